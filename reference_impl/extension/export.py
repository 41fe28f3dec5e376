"""What the writers of the extension need of an export. Saving passes its own objects; the extension does not import saving."""

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
        """Return the number of an object, None for one that is not in the tree."""

    def lose(self, error: SaveError, what: str = "") -> None:
        """Report that something will be missing from the export."""


class Captures(Protocol):
    """Finds what the captures of functions stand for."""

    def resolve(self, trace: Trace, path: str, node: None) -> list[int]:
        """Return the numbers of what a function captures. Constants join the tree."""

    def owner(self, capture: Any) -> Optional[int]:
        """Return the number of what a captured tensor belongs to, None if that cannot be reached."""
