"""The values: an ordinary object-based checkpoint of the tree (FN-01, FN-15, OPT-02, A8)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import dtypes, schema
from reference_impl.format.bundle_writer import BundleWriter
from reference_impl.saving.contents import Content, escape
from reference_impl.saving.contents import read as read_content
from reference_impl.saving.saver import OBJECT_GRAPH_KEY
from reference_impl.saving.slots import Slot
from reference_impl.saving.tree import Tree

VALUE = "VARIABLE_VALUE"


class Keys:
    """The checkpoint keys of a numbered tree: the shortest path of an object, with what has a meaning in keys escaped."""

    def __init__(self, tree: Tree, slots: Sequence[Slot]):
        self._prefixes = {0: ""}
        for node in tree.nodes:
            if node.number in self._prefixes:
                for name, child in node.children.items():
                    self._prefixes.setdefault(child, f"{self._prefixes[node.number]}{escape(name)}/")
        for slot in slots:
            optimizer, variable = self._prefixes[slot.optimizer], self._prefixes[slot.variable]
            self._prefixes.setdefault(slot.value, f"{variable}.OPTIMIZER_SLOT/{optimizer}{escape(slot.name)}/")

    def key(self, number: int, attribute: str) -> str:
        return f"{self._prefixes[number]}.ATTRIBUTES/{attribute}"


def object_graph(
    tree: Tree, keys: Keys, variables: dict[int, str], contents: dict[int, list[Content]], slots: Sequence[Slot]
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
        proto = out.nodes[slot.optimizer].slot_variables.add(slot_name=slot.name)
        proto.original_variable_node_id, proto.slot_variable_node_id = slot.variable, slot.value
    return schema.serialize(out)


def write(
    prefix: Union[str, os.PathLike[str]],
    tree: Tree,
    keys: Keys,
    variables: dict[int, str],
    contents: dict[int, list[Content]],
    graph: bytes,
) -> None:
    """Write all values and the object graph.

    Raises:
      SaveError: a variable has no value.
    """
    with BundleWriter(prefix) as out:
        for node in tree.nodes:
            if node.number in variables:
                value = read(node.object, node.path)
                out.add(keys.key(node.number, VALUE), value.numpy(), dtypes.by_number(value.dtype.as_datatype_enum))
            for content in contents.get(node.number, ()):
                for part, array, dtype in read_content(content):
                    out.add(keys.key(node.number, part), array, dtypes.by_number(dtype.as_datatype_enum))
        out.add(OBJECT_GRAPH_KEY, graph)


def read(variable: Any, path: str) -> tf.Tensor:
    """The value of a variable now."""
    parts = api.variable_components(variable)
    try:
        return variable.read_value() if len(parts) > 1 else parts[0].read_value()
    except tf.errors.FailedPreconditionError as error:
        raise SaveError("the variable has no value", node=path) from error
