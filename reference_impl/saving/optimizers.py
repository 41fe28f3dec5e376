"""What the extension of a file says of optimizers: slots, and update rules (OPT-02, OPT-07)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_impl.format import schema
from reference_impl.saving.functions import Library
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.slots import Slot
from reference_impl.saving.tree import Tree


def messages(slots: Sequence[Slot], updates: Mapping[int, Any]) -> list[Any]:
    """OptimizerState messages in the order of nodes.

    Args:
      slots: of all optimizers.
      updates: number of an optimizer -> OptimizerState with its update rules.
    """
    out: dict[int, Any] = {}
    for number in sorted({slot.optimizer for slot in slots} | set(updates)):
        out[number] = schema.OptimizerState(node_id=number)
        if number in updates:
            out[number].MergeFrom(updates[number])
            out[number].node_id = number
    for slot in slots:
        out[slot.optimizer].slots.add(variable=slot.variable, name=slot.name, value=slot.value)
    return list(out.values())


def updates(tree: Tree, library: Library, options: SaveOptions) -> dict[int, Any]:
    return {}
