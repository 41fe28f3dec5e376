"""The hooks of a load, through which the extension of the file changes loaded objects.

Loading calls these methods. Without an extension, `make` returns None and the other methods do
nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional

from reference_impl.extension import initial_values, registered_objects
from reference_impl.extension.update_rules import UpdateRules
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.functions.load_context import Load
from reference_impl.kinds import optimizer, user_object


class Origin:
    """The file of a load and the messages of its extension by node number, from which classes make
    further objects.

    An Origin holds messages and classes but no loaded objects, so a class does not keep variables
    alive. `graph` is the object graph that was loaded; a part has empty nodes. `message` is the
    Extension of the file, or None.
    """

    def __init__(
        self,
        directory: Layout,
        meta_graph: schema.MetaGraphDef,
        graph: schema.SavedObjectGraph,
        message: Optional[Any],
        construct: Callable[..., None],
    ):
        self.directory, self.meta_graph, self.graph, self.construct = (
            directory,
            meta_graph,
            graph,
            construct,
        )
        message = message or schema.Extension()
        self.registered = {item.node_id: item for item in message.registered}
        self.initial_values = {item.node_id: item for item in message.initial_values}
        self.optimizers = {item.node_id: item for item in message.optimizers}
        self.classes: dict[int, type] = {}  # of generic objects


class Hooks:
    """The hooks of one load."""

    def __init__(self, origin: Origin):
        self.origin = origin

    def check(self, load: Load) -> None:
        """Refuse a load, before anything is made."""

    def make(self, load: Load, number: int, node: schema.SavedObject) -> Optional[Any]:
        """Return the object of a node, or None if the reader of the node's kind should make it."""
        if node.WhichOneof("kind") == "variable":
            return registered_objects.make_variable(load, number, node)
        if node.WhichOneof("kind") != "user_object" or user_object.is_container(node):
            return None
        if node.registered_name:
            revived = registered_objects.make(
                load, number, node, self.origin.registered.get(number)
            )
            if revived is not None:
                return revived
        return self.make_generic(load, number, node)

    def make_generic(self, load: Load, number: int, node: schema.SavedObject) -> Optional[Any]:
        """Return the object of a node whose class is not registered: an optimizer that has update
        rules but no slots.
        """
        return optimizer.read(load, number, node) if number in self.origin.optimizers else None

    def made(self, load: Load, number: int, node: schema.SavedObject, made: object) -> None:
        """Record the class of an object, so that calling it makes another object, and the data that
        a later save writes again.
        """
        if isinstance(made, user_object.LoadedObject):
            self.origin.classes[number] = type(made)
            user_object.set_constructor(
                type(made), functools.partial(self.origin.construct, self.origin, number)
            )
            registered_objects.keep(made, node, self.origin.registered.get(number))

    def attach(self, load: Load) -> None:
        """Give the loaded variables their initial values and the loaded optimizers their update
        rules.
        """
        initial_values.attach(
            self.origin.initial_values, load.objects, load.functions, load.library
        )
        for number, state in self.origin.optimizers.items():
            found = load.objects[number]
            if not isinstance(found, optimizer.LoadedOptimizer):
                continue
            children = {id(load.objects[slot.value]) for slot in state.slots}
            slots = optimizer.slots_of(found)
            slots[:] = [slot._replace(listed=id(slot.value) in children) for slot in slots]
            if state.updates:
                optimizer.set_rules(found, UpdateRules(load.library, state, load.objects))
