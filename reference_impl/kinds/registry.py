"""The kinds of SavedObject, in one list that loading and saving use.

A program adds kinds for one load or one save with ``LoadOptions(kinds=[...])`` and
``SaveOptions(kinds=[...])``; they come first. There is no registry of the process: a load depends
on its arguments alone.

RFC: FMT-01
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.graph import node_kinds
from reference_impl.kinds import (
    asset,
    bare_concrete_function,
    captured_tensor,
    constant,
    container,
    function,
    optimizer,
    resource,
    signature_map,
    user_object,
    variable,
)
from reference_impl.kinds.kind import Kind
from reference_impl.kinds.object_kind import ObjectKind
from reference_impl.load_options import UserKind

# An object is of the first kind that matches it: an optimizer is also a user object.
KINDS: Sequence[Kind] = (
    variable.KIND,
    function.KIND,
    bare_concrete_function.KIND,
    asset.KIND,
    captured_tensor.KIND,
    resource.KIND,
    constant.KIND,
    signature_map.KIND,
    container.KIND,
    optimizer.KIND,
    user_object.KIND,
)
_BY_MESSAGE = {kind.message: kind for kind in KINDS}


class LiveObject(NamedTuple):
    """A live object with its kind, and the plain variables behind a variable."""

    kind: Kind
    parts: Sequence[Any]


class Registry:
    """The kinds of one load or save: those that the caller gave, then all others."""

    def __init__(self, given: Sequence[UserKind] = ()):
        """Raises TypeError if one of the given kinds is not an ObjectKind."""
        self._given: dict[str, Kind] = {}
        for kind in given:
            if not isinstance(kind, ObjectKind):
                raise TypeError(f"kinds: {kind!r} is not a reference_impl.ObjectKind")
            self._given[kind.identifier] = kind
        self._all = (*self._given.values(), *KINDS)

    def of_node(self, node: schema.SavedObject) -> Optional[Kind]:
        """Return the kind of a node of a file, or None if there is no such kind."""
        if self._given and node.user_object.identifier in self._given:
            return self._given[node.user_object.identifier]
        message = node_kinds.of_node(node)
        return None if message is None else _BY_MESSAGE[message]

    def of_objects(self, objects: Sequence[object]) -> list[LiveObject]:
        """Return the kinds of live objects, and the parts of those that are variables."""
        parts = api.parts_of_variables(objects)
        return [LiveObject(self._kind(obj, own), own) for obj, own in zip(objects, parts)]

    def _kind(self, obj: object, parts: Sequence[Any]) -> Kind:
        """Return the kind of a live object. An object with parts is a variable, so VariableKind
        needs no `matches`.
        """
        return next(
            kind for kind in self._all if (parts if kind is variable.KIND else kind.matches(obj))
        )
