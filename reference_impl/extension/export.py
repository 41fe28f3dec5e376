"""The interface of an export that the writers of the extension use.

Saving passes its own objects; the extension does not import saving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Protocol

from reference_impl.errors import SaveError
from reference_impl.kinds.traces import Trace


class Node(Protocol):
    """An object of an export: its number in the object graph, and how Python reaches it."""

    @property
    def number(self) -> int: ...

    @property
    def object(self) -> Any: ...

    @property
    def path(self) -> str: ...


class Tree(Protocol):
    """The objects of an export."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    def number_of(self, obj: Any) -> Optional[int]:
        """Return the number of an object, or None if the object is not in the tree."""

    def lose(self, error: SaveError, what: str = "") -> None:
        """Report that something will be missing from the export."""


class Captures(Protocol):
    """Finds the objects behind the captures of functions."""

    def resolve(self, trace: Trace, path: str, node: None) -> list[int]:
        """Return the numbers of the objects that a function captures. Captured constants are added to the tree."""

    def owner(self, capture: Any) -> Optional[int]:
        """Return the number of the object that a captured tensor belongs to, or None if the object cannot be reached."""
