"""Slot variables of optimizers (OPT-02, V1-18)."""

from __future__ import annotations

from typing import Any, NamedTuple

from reference_impl import tensorflow_api as api
from reference_impl.loading.objects import LoadedObject
from reference_impl.saving.tree import Tree


class Slot(NamedTuple):
    """Numbers of the optimizer, the variable and the slot, and the slot's name."""

    optimizer: int
    variable: int
    name: str
    value: int


def add_slots(tree: Tree) -> list[Slot]:
    """Find the slots of all optimizers among the objects; their variables are added to the tree."""
    found = []
    variables = [node for node in tree.nodes if api.is_variable(node.object)]
    for node in list(tree.nodes):
        for variable, name, value in _slots(node.object, [item.object for item in variables]):
            number = tree.number_of(variable)
            if number is not None:
                found.append(Slot(node.number, number, name, tree.add(value, f"{node.path}.{name}[{tree.nodes[number].path}]")))
    return found


def _slots(obj: Any, variables: list[Any]) -> list[tuple[Any, str, Any]]:
    if isinstance(obj, LoadedObject):
        return [(slot.variable, slot.name, slot.value) for slot in vars(obj).get("_slots", ())]
    if not hasattr(obj, "get_slot_names") or not hasattr(obj, "get_slot"):
        return []
    pairs = [(variable, name) for name in obj.get_slot_names() for variable in variables]
    slots = [(variable, name, _slot(obj, variable, name)) for variable, name in pairs]
    return [(variable, name, value) for variable, name, value in slots if value is not None]


def _slot(optimizer: Any, variable: Any, name: str) -> Any:
    try:
        return optimizer.get_slot(variable, name)
    except KeyError:  # optimizers of Keras have slots for some variables only
        return None
