"""The changes that a downgrade made, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One kind of rewrite.

    Attributes:
      kind: drop_attr, add_attr, drop_node, replace_op, drop_file, drop_object.
      op: the op, file or object it is about.
      what: the change in words, with the reason why no answer changes.
    """

    kind: str
    op: str
    what: str
