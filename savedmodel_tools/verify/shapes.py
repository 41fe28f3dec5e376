"""The shapes that TensorFlow infers when Python imports a graph, and where it then refuses the
graph.

Only ops whose shape functions are in `savedmodel_tools.verify.shape_functions` are inferred.
Every other tensor has an unknown shape, which fits everything: what is inferred here is never more
than TensorFlow infers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Optional

from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.format.values.shapes import Shape, shape_of, shape_text
from reference_impl.graph.edges import output_number, parse_input
from reference_impl.graph.node_attributes import argument_shape
from reference_impl.graph.node_defs import integers_of_constant
from reference_impl.graph.node_forms import OUTPUT_SHAPES, NodeForm
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.order import is_in_order, targets_first
from savedmodel_tools.verify.shape_functions import (
    RANKS,
    RULES,
    Call,
    Misfit,
    check_ranks,
    merge,
)

SCALARS_SINCE = 22  # before this GraphDef version a Placeholder of shape [] had an unknown one


class Shapes:
    """The shapes of one graph or function.

    Args:
      nodes: its nodes.
      producer: the GraphDef version with which it is imported.
      function: None for the main graph. The arguments have the shapes that it says.
      forms: gives the form of a node, so that what nodes of one form say is read once.
      fed: nodes whose outputs have these shapes instead, in a part of a graph that is copied out of
        it: copies do not have what nodes say of their shapes. None for what is imported as it
        stands.
    """

    def __init__(
        self,
        nodes: Nodes,
        producer: int,
        function: Any = None,
        fed: Optional[Mapping[str, list[Shape]]] = None,
        forms: Callable[[schema.NodeDef], NodeForm] = NodeForm,
    ) -> None:
        self._form = forms
        self._in_function = function is not None
        self._scalars = producer >= SCALARS_SINCE
        self._fed = fed
        self._known: dict[str, list[Shape]] = {}
        self._nodes = nodes.by_name
        self._inputs = nodes.data_inputs
        self.misfits: list[
            tuple[str, str]
        ] = []  # (node, what TensorFlow refuses), in the order of the graph
        if function is not None:
            for index, argument in enumerate(function.signature.input_arg):
                noted = argument_shape(function, index)
                self._known[argument.name] = [None if noted is None else shape_of(noted)]
        waits = dict(zip(self._nodes, nodes.sources))
        order = (
            waits if is_in_order(waits) else targets_first(waits, lambda name: waits.get(name, ()))
        )
        for name in order:
            if name in self._nodes:
                self._infer(name, self._nodes[name])

    def outputs(self, name: str) -> list[Shape]:
        """The shapes of the outputs of a node; empty when they are not known."""
        return self._known.get(name, [])

    def of(self, text: str) -> Shape:
        """The shape of the tensor that an input or a signature names; None when it is not known."""
        if ":" not in text and text[:1] != "^" and not (self._in_function and text in self._nodes):
            shapes = self._known.get(text)  # the first output of a node, as most inputs
            if shapes:
                return shapes[0]
        edge = parse_input(text, self._in_function)
        shapes = self._known.get(edge.source, [])
        number = self._number(edge.source, edge.port)
        return shapes[number] if number is not None and number < len(shapes) else None

    def _number(self, source: str, port: str) -> Optional[int]:
        """The number of an output.

        In a function it is said by name: known where the op has but one output.
        """
        if not self._in_function or source not in self._nodes:
            return output_number(port) or 0
        shapes = self._known.get(source, [])
        return 0 if len(shapes) == 1 and port.endswith(":0") else None

    def _infer(self, name: str, node: schema.NodeDef) -> None:
        if self._fed is not None and name in self._fed:
            self._known[name] = self._fed[name]
            return
        form, found = self._form(node), list[Shape]()
        if form.op in RANKS or form.op in RULES:
            found = self._by_rule(name, node, form.op)
        self._known[name] = self._said(node, form, found)

    def _by_rule(self, name: str, node: schema.NodeDef, op: str) -> list[Shape]:
        """Return the shapes that follow from the inputs of a node; none if they do not fit."""
        texts = self._inputs(name)
        shapes = [self.of(text) for text in texts]
        try:
            check_ranks(op, shapes)
            rule = RULES.get(op)
            if rule is None:
                return []
            return rule(
                Call(node, shapes, lambda number: self._integers(texts[number]), self._scalars)
            )
        except Misfit as error:
            self.misfits.append((name, f"{op} does not fit its inputs: {error}"))
            return []

    def _said(self, node: schema.NodeDef, form: NodeForm, found: list[Shape]) -> list[Shape]:
        """What is inferred, together with what the node itself says of its outputs."""
        said = None if self._fed is not None else form.output_shapes
        if said is None:
            return found
        if not found or found == said:
            return said
        if len(said) != len(found):
            return found
        out: list[Shape] = []
        for number, (first, second) in enumerate(zip(found, said)):
            try:
                out.append(merge(first, second))
            except Misfit:
                reason = (
                    f"{OUTPUT_SHAPES} says of output {number} of {node.op} that its shape is"
                    f" {shape_text(second)}, and TensorFlow infers {shape_text(first)}"
                )
                self.misfits.append((node.name, reason))
                out.append(None)
        return out

    def _integers(self, text: str) -> Optional[list[int]]:
        """Return the value of a constant of integers that an input names; None for anything else.

        Raises LimitError.
        """
        node = self._nodes.get(parse_input(text, self._in_function).source)
        values = integers_of_constant(node, limits.SHAPE_INTEGERS)
        if (
            values is None
            and node is not None
            and node.op == "Const"
            and _claimed(node) > limits.SHAPE_INTEGERS
        ):
            raise LimitError(
                f"a shape or axes of more than {limits.SHAPE_INTEGERS} integers",
                node=node.name,
                limit="SHAPE_INTEGERS",
            )
        return (
            values if node is None or len(node.attr["value"].tensor.tensor_shape.dim) < 2 else None
        )


def _claimed(node: schema.NodeDef) -> int:
    """Return how many elements the tensor of a constant says that it has."""
    sizes = (
        [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
        if "value" in node.attr
        else [0]
    )
    return 0 if len(sizes) > 1 else math.prod(sizes)
