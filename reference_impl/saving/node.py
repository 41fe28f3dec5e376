"""A node of the tree of an export: an object with its number, path and kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_impl.kinds import variable
from reference_impl.kinds.kind import Kind


@dataclass(frozen=True)
class Node:
    """An object of the export.

    Attributes:
      number: in the SavedObjectGraph.
      object: a trackable, a concrete function, a signature, or a captured tensor.
      path: the Python path, for messages.
      kind: the kind of the object.
      children: name -> number.
      dependencies: name -> number of an object that a loader needs to make this one.
      of_library: whether a library, not the user, made it while the children of its parent were
        listed.
      parts: the plain variables behind a variable, one for each replica; empty for other objects.
    """

    number: int
    object: Any
    path: str
    kind: Kind
    children: dict[str, int] = field(default_factory=dict)
    dependencies: dict[str, int] = field(default_factory=dict)
    of_library: bool = False
    parts: Sequence[Any] = ()

    @property
    def is_variable(self) -> bool:
        return self.kind is variable.KIND
