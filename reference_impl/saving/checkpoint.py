"""The values of an export: an ordinary object-based checkpoint of the tree.

RFC: FN-01, FN-15, OPT-02
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import OBJECT_GRAPH_KEY, VALUE, checkpoint_key, key_prefix, slot_prefix
from reference_impl.kinds.optimizer import SavedSlot
from reference_impl.saving.contents import Content
from reference_impl.saving.contents import read as read_content
from reference_impl.saving.shards import Value
from reference_impl.saving.tree import Tree
from reference_impl.saving.values import has_value, in_graph, of_variable, run


class Keys:
    """The checkpoint keys of a numbered tree: the shortest path of an object, with what has a meaning in keys escaped."""

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


def object_graph(
    tree: Tree, keys: Keys, variables: Mapping[int, str], contents: Mapping[int, Sequence[Content]], slots: Sequence[SavedSlot]
) -> bytes:
    """The TrackableObjectGraph.

    Args:
      variables: number -> full name.
      contents: number -> its content.
    """
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
        added = out.nodes[slot.optimizer].slot_variables.add(slot_name=slot.name)
        added.original_variable_node_id, added.slot_variable_node_id = slot.variable, slot.value
    return schema.serialize(out)


def values(
    tree: Tree, keys: Keys, variables: Mapping[int, str], contents: Mapping[int, Sequence[Content]], graph: bytes
) -> Iterator[Value]:
    """All values and the object graph, in the order in which they are written.

    Raises:
      SaveError: a variable has no value, or its value is in no session at hand.
    """
    mine = [node for node in tree.nodes if node.number in variables]
    held = run({node.path: [_fetched(node.object)] for node in mine if in_graph(node.object)})
    for node in tree.nodes:
        if node.number in variables and node.path not in held and not has_value(node.object):
            reason = "the variable has no value, so the model could not be loaded. Assign one, or save with strict=False and "
            reason += "load with allow_partial_checkpoint"
            tree.lose(SaveError(reason, node=node.path, clause="RP-03"))
        elif node.number in variables:
            array = held.pop(node.path)[0] if node.path in held else of_variable(node.object, node.path)
            part = api.variable_components(node.object)[0]
            yield Value(keys.key(node.number, VALUE), array, part.dtype, node.object, part.device)
        for content in contents.get(node.number, ()):
            for part, array, dtype in read_content(content, node.path):
                yield Value(keys.key(node.number, part), array, dtype, node.object)
    yield Value(OBJECT_GRAPH_KEY, np.array(graph, object), tf.string, tree.root)


def _fetched(variable: Any) -> Any:
    """What a session is asked for: the read that was made with the variable, so that its graph may be finalised."""
    parts = api.variable_components(variable)
    return variable.read_value() if len(parts) > 1 else parts[0]
