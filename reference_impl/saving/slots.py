"""Slot variables of optimizers.

RFC: OPT-02, V1-18
"""

from __future__ import annotations

from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.kinds.optimizer import LoadedOptimizer, SavedSlot, slots_of
from reference_impl.saving.tree import GrowingTree


def add_slots(tree: GrowingTree) -> list[SavedSlot]:
    """Find the slots of all optimizers among the objects; their variables are added to the tree."""
    found = []
    variables = [node.object for node in tree.nodes if api.is_variable(node.object)]
    for node in list(tree.nodes):
        for variable, name, value in _slots(node.object, variables):
            number = tree.number_of(variable)
            if number is not None:
                listed = tree.number_of(value) is not None
                slot = tree.add(value, f"{node.path}.{name}[{tree.nodes[number].path}]")
                found.append(SavedSlot(node.number, number, name, slot, listed))
    return found


def _slots(obj: Any, variables: list[Any]) -> list[tuple[Any, str, Any]]:
    if isinstance(obj, LoadedOptimizer):
        return [(slot.variable, slot.name, slot.value) for slot in slots_of(obj)]
    return api.optimizer_slots(obj, variables) if api.is_optimizer(obj) else []
