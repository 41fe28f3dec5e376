"""Kinds that a program adds: how objects of its own classes are saved and loaded.

RFC: REV-04
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds import user_object
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies


class ObjectKind(Kind):
    """A kind of object that a program adds with ``LoadOptions(kinds=[...])`` and
    ``SaveOptions(kinds=[...])``.

    Objects of the kind are saved as user objects with its `identifier`. Shipped TensorFlow does not
    know the identifier and loads them as generic objects, with the same variables and functions.
    A load without the kind does the same.

    Subclasses define `identifier`, `matches` and `make`. They may define `state` and `set_state`
    for values that are not in variables, and any method of `reference_impl.kinds.kind.Kind`.

    Example:

        class Counters(reference_impl.ObjectKind):
            identifier = "my_package.counter"

            def matches(self, obj):
                return type(obj) is Counter

            def make(self):
                return Counter()

            def state(self, obj):
                return {"count": tf.constant(obj.count)}

            def set_state(self, obj, state):
                obj.count = int(state["count"])

    RFC: REV-04
    """

    message = node_kinds.USER_OBJECT
    identifier: str  # a package and a name, e.g. "my_package.counter"

    def make(self) -> Any:
        """Return a new object, a trackable. Children become its attributes afterwards."""
        raise NotImplementedError

    def set_state(self, obj: Any, state: Mapping[str, tf.Tensor]) -> None:
        """Give an object the state that `state` returned when it was saved.

        The values come from a file and must not be trusted.
        """

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Make the object of a node."""
        return self.make()

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Set the children as attributes."""
        user_object.attach_attributes(load, number, node)

    def restore(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Give an object its state from the checkpoint."""
        keys = load.plain_state_keys(number)
        if keys:
            values = {name: load.checkpoint.read(key) for name, key in keys.items()}
            self.set_state(load.objects[number], values)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write a user object with the identifier of the kind."""
        user_object.write_identifier(out, self.identifier)
        write_dependencies(out, node.dependencies)
