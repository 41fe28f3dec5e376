"""What would help where a model cannot be migrated: for each kind of refusal a sentence a user can act on."""

from __future__ import annotations

import re

from compat_matrix.skew import advice, contrib

_NO_OP = re.compile(r"Op type not registered '([^']{1,200})'|no op(?: called)? '([^']{1,200})'")
_NO_KERNEL = re.compile(r"No OpKernel was registered to support Op '([^']{1,200})' used by \{\{node ([^}]{1,500})\}\}")


def _instead(op: str) -> str:
    found = contrib.replacement(op)
    return found.text if found else ""


def fix_of(message: str, error_class: str | None) -> str:
    """A way out, "" when none is known."""
    if match := _NO_OP.search(message):
        return _instead(match[1] or match[2]) or advice.custom_op(match[1] or match[2])
    if match := _NO_KERNEL.search(message):
        where = f"no TensorFlow of this kind computes {match[1]} (node {match[2]!r}) for these types on a CPU"
        return _instead(match[1]) or f"{where}: migrate where its kernel is registered, or export the model without it"
    if (error_class or "").endswith("MissingFileError"):
        return "put the missing file back into the model's directory, or export the model again"
    if (error_class or "").endswith(("TruncatedError", "ChecksumError", "MalformedError", "CorruptTableError")):
        return "the file is damaged: take it from its origin again"
    return ""
