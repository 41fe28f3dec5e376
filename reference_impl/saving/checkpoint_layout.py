"""The checkpoint keys of an export, and the object graph that a checkpoint stores with its values.

RFC: FN-01, FN-15, OPT-02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reference_impl.format import schema
from reference_impl.format.names import VALUE, checkpoint_key, object_prefixes, slot_prefix
from reference_impl.kinds import variable
from reference_impl.kinds.optimizer import SavedSlot, write_slot
from reference_impl.saving.saveable_state import SaveableState
from reference_impl.saving.tree import Tree


class Keys:
    """The checkpoint keys of a tree: the shortest path of each object, escaped."""

    def __init__(self, tree: Tree, slots: Sequence[SavedSlot]):
        self._prefixes = object_prefixes([node.children for node in tree.nodes])
        for slot in slots:
            optimizer, trained = self._prefixes[slot.optimizer], self._prefixes[slot.variable]
            self._prefixes.setdefault(slot.value, slot_prefix(trained, optimizer, slot.name))

    def key(self, number: int, attribute: str) -> str:
        """Return the checkpoint key of an attribute of an object."""
        return checkpoint_key(self._prefixes[number], attribute)


@dataclass(frozen=True)
class SavedVariable:
    """A variable of an export: its full name, its checkpoint key, and the plain variables behind
    it.
    """

    name: str
    key: str
    parts: Sequence[Any]


@dataclass(frozen=True)
class CheckpointLayout:
    """The keys and the object graph of a checkpoint.

    Attributes:
      variables: number of a variable's node -> the variable.
      object_graph: the serialised TrackableObjectGraph.
    """

    keys: Keys
    variables: Mapping[int, SavedVariable]
    object_graph: bytes


def checkpoint_layout(
    tree: Tree, states: Mapping[int, Sequence[SaveableState]], slots: Sequence[SavedSlot]
) -> CheckpointLayout:
    """Return the layout of the checkpoint of a tree.

    `states` has the states by the number of their object.
    """
    stored = [slot for slot in slots if not slot.listed]
    keys = Keys(tree, stored)
    variables = {
        node.number: SavedVariable(
            variable.name_of(node.object), keys.key(node.number, VALUE), node.parts
        )
        for node in tree.nodes
        if node.is_variable
    }
    return CheckpointLayout(keys, variables, _object_graph(tree, keys, variables, states, stored))


def _object_graph(
    tree: Tree,
    keys: Keys,
    variables: Mapping[int, SavedVariable],
    states: Mapping[int, Sequence[SaveableState]],
    slots: Sequence[SavedSlot],
) -> bytes:
    """Return the serialised TrackableObjectGraph."""
    out = schema.TrackableObjectGraph()
    for node in tree.nodes:
        proto = out.nodes.add()
        for name, child in node.children.items():
            proto.children.add(node_id=child, local_name=name)
        if node.number in variables:
            saved = variables[node.number]
            proto.attributes.add(name=VALUE, full_name=saved.name, checkpoint_key=saved.key)
        for state in states.get(node.number, ()):
            for name, end in state.attributes().items():
                proto.attributes.add(
                    name=name, full_name=name, checkpoint_key=keys.key(node.number, end)
                )
    for slot in slots:
        write_slot(out.nodes, slot)
    return schema.serialize(out)
