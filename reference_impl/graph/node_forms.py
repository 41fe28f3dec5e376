"""The forms of nodes: what a node is, without its name and its inputs.

A model has few forms. A traced model of 12,000 nodes has 1,000, since layers repeat. A rule that
looks only at the op, the device and the attributes of a node judges each form once.

Example: all nodes ``MatMul`` with the attributes ``T: float, transpose_a: false, transpose_b:
false`` are of one form.
"""

from __future__ import annotations

import functools
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.graph.references import function_attributes

# Nodes with more bytes, such as constants, are a form each: comparing them takes longer than it
# saves.
_MOST_BYTES = 1024
OUTPUT_SHAPES = "_output_shapes"
_NAME, _OP, _INPUT = 0x0A, 0x12, 0x1A  # tags of the fields of a NodeDef


class NodeForm:
    """The op, the device and the attributes of several equal nodes.

    Args:
      node: one of them.
    """

    def __init__(self, node: schema.NodeDef):
        self.node = node
        self.op: str = node.op

    @functools.cached_property
    def device(self) -> str:
        return str(self.node.device)

    @functools.cached_property
    def output_shapes(self) -> Optional[list[Shape]]:
        """The shapes that a node notes for its outputs; None if it notes none."""
        if OUTPUT_SHAPES not in self.node.attr:
            return None
        return [shape_of(shape) for shape in self.node.attr[OUTPUT_SHAPES].list.shape]

    @functools.cached_property
    def has_gradient(self) -> bool:
        """Whether a custom gradient is registered for the node."""
        return CUSTOM_GRADIENT in self.node.attr

    @functools.cached_property
    def functions(self) -> list[schema.AttrValue]:
        """The attributes that hold functions, as `function_attributes` gives them."""
        return function_attributes(self.node.attr)


class NodeForms:
    """The forms of the nodes of a graph, which must not change meanwhile."""

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, NodeForm] = {}
        # By the id of a node, with the node: it keeps the id.
        self._by_node: dict[int, tuple[NodeForm, schema.NodeDef]] = {}

    def of(self, node: schema.NodeDef) -> NodeForm:
        """Return the form of a node."""
        known = self._by_node.get(id(node))
        if known is not None:
            return known[0]
        form = self._find(node)
        self._by_node[id(node)] = form, node
        return form

    def _find(self, node: schema.NodeDef) -> NodeForm:
        message = node.SerializeToString()
        if len(message) > _MOST_BYTES:
            return NodeForm(node)
        written = _without_name_and_inputs(message)
        form = self._by_bytes.get(written)
        if form is None:
            form = self._by_bytes[written] = NodeForm(node)
        return form


def _without_name_and_inputs(message: bytes) -> bytes:
    """Return the bytes of a NodeDef without its name and inputs, which stand first.

    If other fields stand before them, they are kept. Nodes that are alike then get different forms,
    which costs only time.
    """
    at, kept = 0, b""
    while at + 1 < len(message):
        tag, length, start = message[at], message[at + 1], at + 2
        if length > 0x7F:  # in two bytes: a message of _MOST_BYTES has no longer field
            length, start = (length & 0x7F) | (message[start] << 7), start + 1
        if tag == _OP:
            kept = message[at : start + length]
        elif tag not in (_INPUT, _NAME):
            break
        at = start + length
    return kept + message[at:]
