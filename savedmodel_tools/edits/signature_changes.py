"""Several changes of the signatures of one model, made in one edit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from savedmodel_common.printable import like
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.arguments import rename_arguments
from savedmodel_tools.edits.draft import Draft
from savedmodel_tools.edits.proof import RefusedError

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SignatureChanges:
    """Changes of signatures, in the order in which they are made.

    Attributes:
      inputs: ``KEY:OLD`` and the new name of an input.
      outputs: ``KEY:OLD`` and the new name of an output.
      drop: keys.
      rename: old and new keys.
      copy: keys and their second keys.
      default: key of the signature that becomes ``serving_default``.
    """

    inputs: Pairs = ()
    outputs: Pairs = ()
    drop: tuple[str, ...] = ()
    rename: Pairs = ()
    copy: Pairs = ()
    default: Optional[str] = None

    def apply(self, draft: Draft, tags: Optional[str] = None) -> None:
        """Make the changes, for example ``SignatureChanges(drop=("debug",)).apply(draft)``.

        Raises RefusedError and NoMetaGraphError as `edits.signatures.rename` and
        `edits.arguments.rename_arguments`.
        """
        keys = [] if not (self.inputs or self.outputs) else _keys(draft, tags)
        inputs, outputs = (_by_key(draft, keys, pairs) for pairs in (self.inputs, self.outputs))
        for key in dict.fromkeys([*inputs, *outputs]):
            rename_arguments(draft, key, inputs.get(key, {}), outputs.get(key, {}), tags)
        if self.drop:
            signatures.drop(draft, self.drop, tags)
        for old, new in self.rename:
            signatures.rename(draft, old, new, tags)
        for old, new in self.copy:
            signatures.copy(draft, old, new, tags)
        if self.default is not None:
            signatures.make_default(draft, self.default, tags=tags)


def _keys(draft: Draft, tags: Optional[str]) -> list[str]:
    """Return the keys of the signatures, longer ones first: a key may contain a colon."""
    _, graph = draft.graph(tags)
    return sorted(graph.signature_def, key=len, reverse=True)


def _by_key(draft: Draft, keys: list[str], pairs: Pairs) -> Mapping[str, dict[str, str]]:
    """Return the new names of arguments by signature key and old name. Raises RefusedError."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for text, new in pairs:
        key = next((one for one in keys if text.startswith(f"{one}:")), None)
        if key is None:
            named = text.partition(":")[0]
            reason = (
                f"there is no such signature; there are: {', '.join(sorted(keys)) or 'none'}."
                f"{like(named, keys)}"
            )
            raise RefusedError(reason, file=draft.file, node=named)
        found[key][text[len(key) + 1 :]] = new
    return found
