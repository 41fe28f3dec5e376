"""The TrackableObjectGraph of an export, and the checkpoint keys of its objects.

RFC: FN-01, FN-15, OPT-02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reference_impl.format import schema
from reference_impl.format.names import VALUE, checkpoint_key, key_prefix, slot_prefix
from reference_impl.kinds.optimizer import SavedSlot, write_slot
from reference_impl.saving.contents import Content
from reference_impl.saving.tree import Tree


class Keys:
    """The checkpoint keys of a tree: the shortest path of each object, escaped."""

    def __init__(self, tree: Tree, slots: Sequence[SavedSlot]):
        self._prefixes = {0: ""}
        for node in tree.nodes:
            if node.number in self._prefixes:
                for name, child in node.children.items():
                    self._prefixes.setdefault(child, self._prefixes[node.number] + key_prefix((name,)))
        for slot in slots:
            optimizer, variable = self._prefixes[slot.optimizer], self._prefixes[slot.variable]
            self._prefixes.setdefault(slot.value, slot_prefix(variable, optimizer, slot.name))

    def key(self, number: int, attribute: str) -> str:
        return checkpoint_key(self._prefixes[number], attribute)


def serialized_object_graph(
    tree: Tree, keys: Keys, variables: Mapping[int, str], contents: Mapping[int, Sequence[Content]], slots: Sequence[SavedSlot]
) -> bytes:
    """Return the TrackableObjectGraph. `variables` gives full names, `contents` the contents of tables, by number."""
    out = schema.TrackableObjectGraph()
    for node in tree.nodes:
        proto = out.nodes.add()
        for name, child in node.children.items():
            proto.children.add(node_id=child, local_name=name)
        if node.number in variables:
            key = keys.key(node.number, VALUE)
            proto.attributes.add(name=VALUE, full_name=variables[node.number], checkpoint_key=key)
        for content in contents.get(node.number, ()):
            for name, end in content.attributes().items():
                proto.attributes.add(name=name, full_name=name, checkpoint_key=keys.key(node.number, end))
    for slot in slots:
        write_slot(out.nodes, slot)
    return schema.serialize(out)
