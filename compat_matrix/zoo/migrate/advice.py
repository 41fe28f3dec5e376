"""What would help where a model cannot be migrated: for each kind of refusal a sentence a user can act on."""

from __future__ import annotations

import re

from compat_matrix.skew import advice, contrib

_OP = re.compile(r"\bop(?:eration)?s? '?([A-Z][A-Za-z0-9_>]*)'?")


def fix_of(message: str, error_class: str | None) -> str:
    """A way out, "" when none is known."""
    match = _OP.search(message)
    if match and (error_class or "").endswith("UnknownOpError"):
        name = match[1]
        instead = contrib.replacement(name, "contrib")
        return instead.text if instead else advice.custom_op(name)
    if (error_class or "").endswith("MissingFileError"):
        return "put the missing file back into the model's directory, or export the model again"
    if (error_class or "").endswith(("TruncatedError", "ChecksumError", "MalformedError", "CorruptTableError")):
        return "the file is damaged: take it from its origin again"
    return ""
