"""The forms of nodes: what a node is, without its name and its inputs.

A model has few forms. A traced model of 12,000 nodes has 1,000, since layers repeat. A rule that
looks only at the op, the device and the attributes of a node judges each form once.

Example: all nodes ``MatMul`` with the attributes ``T: float, transpose_a: false, transpose_b:
false`` are of one form.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.references import function_attributes

# Nodes with more bytes, such as constants, are a form each: comparing them takes longer than it
# saves.
_LARGE = 1024
OUTPUT_SHAPES = "_output_shapes"
_NAME, _OP, _INPUT, _ATTRIBUTE = 0x0A, 0x12, 0x1A, 0x2A  # tags of the fields of a NodeDef
_OTHERS = (_ATTRIBUTE, 0x22, 0x32, 0x3A)  # and of its device, its debug info and its type
_FIELD = 2  # bytes before a text of less than 128 bytes: tag and length
_FUNCTION, _FUNCTIONS = b"\x52", b"\x4a"  # tags of functions in an AttrValue and in a list of it


class NodeForm:
    """The op, the device and the attributes of several equal nodes.

    Args:
      node: one of them.
      written: its bytes without its name, op and inputs; None if they are not known.
      family: the forms of the same graph, which share what is read of them; None without.
    """

    def __init__(
        self,
        node: schema.NodeDef,
        written: Optional[bytes] = None,
        family: Optional[NodeForms] = None,
    ):
        self.node = node
        self.op: str = node.op
        self._written, self._family = written, family

    def _may_hold(self, key: str) -> bool:
        """Whether the node may have an attribute; False is certain. Bytes are searched fast."""
        return self._written is None or key.encode() in self._written

    @functools.cached_property
    def device(self) -> str:
        return str(self.node.device)

    @functools.cached_property
    def output_shapes(self) -> Optional[list[Shape]]:
        """The shapes that a node notes for its outputs; None if it notes none."""
        noted = self.noted_shapes
        if noted is None:
            return None
        known = {} if self._family is None else self._family.shapes
        if noted not in known:
            shapes = self.node.attr[OUTPUT_SHAPES].list.shape
            known[noted] = [shape_of(shape) for shape in shapes]
        return known[noted]

    @functools.cached_property
    def noted_shapes(self) -> Optional[bytes]:
        """The bytes of the attribute with `output_shapes`; None without it."""
        if not self._may_hold(OUTPUT_SHAPES) or OUTPUT_SHAPES not in self.node.attr:
            return None
        return self.node.attr[OUTPUT_SHAPES].SerializeToString()

    @functools.cached_property
    def plain(self) -> NodeForm:
        """A form that has the same op, device and attributes of the op.

        It may have other attributes whose names begin with an underscore, which no op defines, but
        both have no functions in those.

        Example: forms that differ in ``_class`` alone, by which TensorFlow places nodes.
        """
        return self if self._family is None else self._family.plain(self, self._written)

    @functools.cached_property
    def has_gradient(self) -> bool:
        """Whether a custom gradient is registered for the node."""
        return self._may_hold(CUSTOM_GRADIENT) and CUSTOM_GRADIENT in self.node.attr

    @functools.cached_property
    def functions(self) -> list[schema.AttrValue]:
        """The attributes that hold functions, as `function_attributes` gives them."""
        return function_attributes(self.node.attr) if self.may_hold_functions else []

    @functools.cached_property
    def may_hold_functions(self) -> bool:
        """Whether an attribute may hold a function; False is certain."""
        written = self._written
        return written is None or _FUNCTION in written or _FUNCTIONS in written


class NodeForms:
    """The forms of the nodes of a graph, which must not change meanwhile."""

    def __init__(self) -> None:
        self.shapes: dict[bytes, list[Shape]] = {}  # by the bytes of the attribute
        self._plain: dict[tuple[str, bytes], NodeForm] = {}
        self._by_bytes: dict[
            tuple[str, bytes], NodeForm
        ] = {}  # by op and what is written beside it
        self._by_id: dict[int, NodeForm] = {}
        self._kept: list[schema.NodeDef] = []  # so that no other node gets the id of one of them

    def of(self, node: schema.NodeDef) -> NodeForm:
        """Return the form of a node."""
        form = self._by_id.get(id(node))
        if form is None:
            form = self._find(node, node.name, node.op, node.input)
        return form

    def of_all(self, nodes: Nodes) -> list[NodeForm]:
        """Return the form of each node of a body."""
        rows = zip(nodes.messages, nodes.names, nodes.ops, nodes.inputs)
        return [self._find(*row) for row in rows]

    def plain(self, form: NodeForm, written: Optional[bytes]) -> NodeForm:
        """Return the first form that has the same `NodeForm.plain` as a form with these bytes."""
        if written is None or form.may_hold_functions:
            return form
        attributes = _attributes_of_the_op(written)
        return form if attributes is None else self._plain.setdefault((form.op, attributes), form)

    def _find(self, node: schema.NodeDef, name: str, op: str, inputs: Sequence[str]) -> NodeForm:
        message = node.SerializeToString()
        if len(message) > _LARGE:
            form: Optional[NodeForm] = NodeForm(node, None, self)
        else:
            at = 2 * _FIELD + len(name) + len(op) + _FIELD * len(inputs) + len("".join(inputs))
            # Longer texts and those with other letters have a byte that is not ASCII before that.
            plain = name and op and message[:at].isascii()
            written = message[at:] if plain else _without_name_and_inputs(message)
            form = self._by_bytes.get((op, written))
            if form is None:
                form = self._by_bytes[op, written] = NodeForm(node, written, self)
        assert form is not None
        self._by_id[id(node)] = form
        self._kept.append(node)
        return form


def _without_name_and_inputs(message: bytes) -> bytes:
    """Return the bytes of a NodeDef without its name, op and inputs, which stand first.

    If other fields stand before them, they are kept. Nodes that are alike then get different forms,
    which costs only time.
    """
    at = 0
    while at + 1 < len(message) and message[at] in (_NAME, _OP, _INPUT):
        length, start = message[at + 1], at + 2
        if length > 0x7F:  # in two bytes: a message of _LARGE has no longer field
            length, start = (length & 0x7F) | (message[start] << 7), start + 1
        at = start + length
    return message[at:]


def _attributes_of_the_op(written: bytes) -> Optional[bytes]:
    """Return the fields of a NodeDef, in one order, but attributes that begin with an underscore.

    Return None if there is a field that a NodeDef does not have.
    """
    at, kept = 0, []
    while at + 1 < len(written) and written[at] in _OTHERS:
        length, start = written[at + 1], at + 2
        if length > 0x7F:  # as in `_without_name_and_inputs`
            length, start = (length & 0x7F) | (written[start] << 7), start + 1
        end = start + length
        # An entry of a map: the tag and the length of its key, then the key.
        if written[at] != _ATTRIBUTE or written[start + 2 : start + 3] != b"_":
            kept.append(written[at:end])
        at = end
    return b"".join(sorted(kept)) if at == len(written) else None
