"""The hook of a load, through which the extension of the file changes loaded objects.

Only a load of a file that has an extension message, or objects of registered classes, has this hook
(`reference_impl.loading.loader`).
"""

from __future__ import annotations

from typing import Any, Optional

from reference_impl.extension import initial_values, registered_objects
from reference_impl.extension.update_rules import UpdateRules
from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext, Origin
from reference_impl.graph import node_kinds
from reference_impl.kinds import optimizer, user_object


class ExtensionHook:
    """The hook of one load, a `reference_impl.loading.hooks.LoadHook`.

    The messages of the extension are kept by node number.
    """

    def __init__(self, origin: Origin):
        self.origin = origin
        message = origin.extension or schema.Extension()
        self.registered = {item.node_id: item for item in message.registered}
        self.initial_values = {item.node_id: item for item in message.initial_values}
        self.optimizers = {item.node_id: item for item in message.optimizers}

    def check(self, load: LoadContext) -> None:
        """Refuse a load, before anything is made."""

    def make(self, load: LoadContext, number: int, node: schema.SavedObject) -> Optional[Any]:
        """Return the object of a node, or None if the reader of the node's kind should make it."""
        kind = node_kinds.of_node(node)
        if kind is node_kinds.VARIABLE:
            return registered_objects.make_variable(load, number, node)
        if not isinstance(load.kinds[number], user_object.UserObjectKind):
            return None
        if node.registered_name:
            revived = registered_objects.make(load, number, node, self.registered.get(number))
            if revived is not None:
                return revived
        return self.make_generic(load, number, node)

    def make_generic(
        self, load: LoadContext, number: int, node: schema.SavedObject
    ) -> Optional[Any]:
        """Return the object of a node whose class is not registered: an optimizer that has update
        rules but no slots.
        """
        return optimizer.KIND.read(load, number, node) if number in self.optimizers else None

    def made(self, load: LoadContext, number: int, node: schema.SavedObject, made: object) -> None:
        """Keep the data of an object whose class is not registered, which a later save writes."""
        if isinstance(made, user_object.LoadedObject):
            registered_objects.keep(made, node, self.registered.get(number))

    def attach(self, load: LoadContext) -> None:
        """Give the loaded variables their initial values and the loaded optimizers their update
        rules.
        """
        initial_values.attach(self.initial_values, load.objects, load.functions, load.library)
        for number, state in self.optimizers.items():
            found = load.objects[number]
            if not isinstance(found, optimizer.LoadedOptimizer):
                continue
            children = {id(load.objects[slot.value]) for slot in state.slots}
            slots = optimizer.slots_of(found)
            slots[:] = [slot._replace(listed=id(slot.value) in children) for slot in slots]
            if state.updates:
                optimizer.set_rules(found, UpdateRules(load.library, state, load.objects))
