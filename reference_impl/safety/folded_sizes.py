"""Bound how many elements the tensors have that TensorFlow computes while it imports a graph.

The bounds are crude: they may be too high, and only tensors beyond
`limits.FOLDED_ELEMENTS` are reported. Nothing is
computed but products of sizes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.node_defs import integers_of_constant
from reference_impl.safety.folding_tables import OF_SHAPES, asked_of, output_counts

_HUGE = 1 << 200
# Dtype -> format of an element in `tensor_content`, and the field that lists elements.
_FLOATS = {
    schema.DT_FLOAT: ("<f", "float_val"),
    schema.DT_DOUBLE: ("<d", "double_val"),
    schema.DT_HALF: ("<e", "half_val"),
}


def _ops(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Ops that ask for a value, but never return more elements than their largest input has.
_NOT_LARGER = _ops("""
    All Any ArgMax ArgMin ConjugateTranspose DecodePaddedRaw EditDistance EuclideanNorm ExpandDims
    Fingerprint GatherV2 HistogramFixedWidth MatrixDiagPartV2 MatrixDiagPartV3 Max Mean Min
    NthElement Prod ReduceJoin Reshape ReverseV2 RiscSlice Slice Split SplitV StridedSlice Sum
    TopKV2 Transpose UniqueV2 UniqueWithCountsV2 XlaDynamicSlice
    """)
# Ops that put their inputs together.
_TOGETHER = _ops(
    "Pack Concat ConcatV2 DynamicStitch ParallelDynamicStitch QuantizedConcat QuantizedConcatV2"
)
# Ops that combine the elements of their inputs one by one.
_COMPARING = _ops(
    "Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalNot Select"
    " SelectV2"
)
_DIVIDING = _ops(
    "FloorDiv FloorMod Div RealDiv TruncateDiv TruncateMod Mod DivNoNan Ceil Floor Round Rint Sqrt"
)
_SAME = _ops(
    "Identity Snapshot StopGradient Cast Maximum Minimum Mul Abs Neg Sign ZerosLike OnesLike"
)
_ADDING = _ops("Add AddV2 Sub AddN Square SquaredDifference")
_ELEMENTWISE = _COMPARING | _DIVIDING | _SAME | _ADDING
# Ops whose numbers are, as a product, at most those of their inputs; those that add may double them
# for each input.
_PRODUCTS = (
    _COMPARING
    | _DIVIDING
    | _SAME
    | _TOGETHER
    | _ops("""
        Bitcast BroadcastArgs BroadcastGradientArgs BroadcastTo ConcatOffset EnsureShape Fill Gather
        GatherNd IdentityN InvertPermutation LinSpace ListDiff OneHot Pad PadV2 PreventGradient
        Range Squeeze Tile Unique Unpack Where
        """)
)
_DOUBLING = _ADDING | _ops("Sum Cumsum")


class Sizes:
    """Bounds for nodes of one body, in an order in which a node comes after its inputs.

    `body` has all nodes of the body.
    """

    def __init__(
        self, nodes: Iterable[schema.NodeDef], in_function: bool, body: Mapping[str, schema.NodeDef]
    ):
        self._in_function, self._body = in_function, body
        self._sizes: dict[str, int] = {}
        self._ranks: dict[str, int] = {}
        self._values: dict[
            str, int
        ] = {}  # the largest product of the numbers of a tensor that holds sizes
        self._crude: set[str] = (
            set()
        )  # nodes whose numbers do not follow from constants and known shapes
        for node in nodes:
            self._ranks[node.name] = self._rank(node)
            self._sizes[node.name] = min(self._size(node), _HUGE)
            self._values[node.name] = min(self._value(node), _HUGE)
            if self._is_crude(node):
                self._crude.add(node.name)

    def is_large(self, node: schema.NodeDef) -> bool:
        """Return whether a node may make a tensor of more than `limits.FOLDED_ELEMENTS` elements
        out of smaller ones.
        """
        inputs = [self._known(text, self._sizes) for text in data_inputs(node)]
        return node.op != "Const" and self._sizes[node.name] > limits.FOLDED_ELEMENTS >= max(
            inputs, default=1
        )

    def has_large_value(self, node: schema.NodeDef, limit: int) -> bool:
        """Return whether the numbers of a node's output may have a product of more than `limit`, as
        far as that is known.

        Numbers that do not follow from constants count as small: the bound of the size of a
        loop's results, for example, is the product of the sizes of all its inputs.
        """
        return node.name not in self._crude and limit < self._values.get(node.name, 1) < _HUGE

    def _is_crude(self, node: schema.NodeDef) -> bool:
        if node.op == "Const":
            return False
        sources = [parse_input(text, self._in_function).source for text in data_inputs(node)]
        if node.op in OF_SHAPES and node.op != "Rank":
            return any(name in self._crude for name in sources)
        known = (
            node.op in _NOT_LARGER
            or node.op in _PRODUCTS
            or node.op in _DOUBLING
            or node.op in OF_SHAPES
        )
        return "shape" not in node.attr and (
            not known or any(name in self._crude for name in sources)
        )

    def _known(self, text: str, table: Mapping[str, int]) -> int:
        return table.get(parse_input(text, self._in_function).source, 1)

    def _promised(self, text: str) -> int:
        """Return how many elements a tensor has whose shape follows from the graph, as far as that
        is seen here.
        """
        node = self._body.get(parse_input(text, self._in_function).source)
        if node is not None and "shape" in node.attr:
            return _shape_size(node.attr["shape"].shape)
        return self._known(text, self._sizes)

    def _rank(self, node: schema.NodeDef) -> int:
        """Return a bound for the number of dimensions of a node's outputs."""
        if node.op == "Const":
            return len(node.attr["value"].tensor.tensor_shape.dim) if "value" in node.attr else 0
        if node.op in OF_SHAPES or node.op in ("Range", "LinSpace"):
            return 1
        ranks = [self._known(text, self._ranks) for text in data_inputs(node)]
        if node.op in _ELEMENTWISE or node.op in _TOGETHER - {"Pack"}:
            return max(ranks, default=0)
        if node.op == "Pack":
            return max(ranks, default=0) + 1
        if node.op == "StridedSlice" and (
            "new_axis_mask" not in node.attr or not node.attr["new_axis_mask"].i
        ):
            return ranks[0] if ranks else 0
        return limits.RANK

    def _size(self, node: schema.NodeDef) -> int:
        if node.op == "Const":
            return _constant_size(node)
        if node.op in OF_SHAPES:
            return limits.RANK
        sizes = [self._known(text, self._sizes) for text in data_inputs(node)]
        largest = max(sizes, default=1)
        if node.op in _NOT_LARGER:
            return largest
        if node.op in _TOGETHER:
            return sum(sizes)
        asked = asked_of(node)
        if asked:
            return largest * math.prod(self._known(text, self._values) for text in asked)
        # Vectors of one length or with scalars are combined one by one; a column and a row, or
        # matrices, multiply.
        return (
            largest if node.op in _ELEMENTWISE and self._ranks[node.name] <= 1 else math.prod(sizes)
        )

    def _value(self, node: schema.NodeDef) -> int:
        """Return a bound for the product of a tensor's numbers."""
        if node.op == "Const":
            return _product(node)
        if node.op in OF_SHAPES:
            return (
                limits.RANK
                if node.op == "Rank"
                else math.prod(map(self._promised, data_inputs(node)))
            )
        inputs = data_inputs(node)
        if node.op in _NOT_LARGER:
            asked = asked_of(node)
            inputs = [text for text in inputs if text not in asked]
        elif node.op not in _PRODUCTS and node.op not in _DOUBLING:
            return _HUGE
        found = math.prod(self._known(text, self._values) for text in inputs)
        return found * 2 ** len(inputs) * self._size(node) if node.op in _DOUBLING else found


def _shape_size(shape: schema.TensorShapeProto) -> int:
    """Return the number of elements of a shape, 1 for each dimension that is not known."""
    return min(math.prod([max(dim.size, 1) for dim in shape.dim[: limits.RANK]]), _HUGE)


def _product(node: schema.NodeDef) -> int:
    numbers = integers_of_constant(node, limits.KNOWN_NUMBERS)
    if numbers is None:
        numbers = [
            math.ceil(abs(value)) if math.isfinite(value) else _HUGE
            for value in floats_of_constant(node)
        ]
    return math.prod(max(1, abs(number)) for number in numbers)


def floats_of_constant(node: schema.NodeDef) -> list[float]:
    """Return the elements of a small constant of floats; none of a larger or a damaged one, or of
    other numbers.

    They are read without NumPy, whose import takes longer than an inspection.
    """
    tensor, size = node.attr["value"].tensor, _constant_size(node)
    if tensor.dtype not in _FLOATS or size > limits.KNOWN_NUMBERS:
        return []
    code, field = _FLOATS[tensor.dtype]
    content = tensor.tensor_content
    if not content and field == "half_val":  # the bits of a number
        content = b"".join((bits & 0xFFFF).to_bytes(2, "little") for bits in tensor.half_val)
    if len(content) % struct.calcsize(code):
        return []
    values: list[float] = [value for (value,) in struct.iter_unpack(code, content)] or list(
        getattr(tensor, field)
    )
    return values + values[-1:] * (size - len(values))  # the last element fills the rest


def _constant_size(node: schema.NodeDef) -> int:
    shape = (
        node.attr["value"].tensor.tensor_shape
        if "value" in node.attr
        else schema.TensorShapeProto()
    )
    return math.prod([max(dim.size, 0) for dim in shape.dim[:300]])


def too_many_outputs(node: schema.NodeDef) -> Optional[int]:
    """Return the number of outputs that an attribute of a node promises, if that is more than
    `limits.FOLDED_OUTPUTS`.
    """
    names = output_counts().get(node.op, ())
    most = max([node.attr[name].i for name in names if name in node.attr], default=0)
    return most if most > limits.FOLDED_OUTPUTS else None
