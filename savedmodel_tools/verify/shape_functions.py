"""The shape functions of frequent ops.

The shapes that they infer are never more than those of TensorFlow 2.21.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.format.values.shapes import Shape, shape_of, shape_text


class Misfit(Exception):
    """TensorFlow refuses these shapes; the message says why."""


class Call(NamedTuple):
    """A node to infer."""

    node: schema.NodeDef  # the NodeDef
    shapes: Sequence[Shape]  # those of its inputs
    # Gives the value of an input, by number; None for what is not a small constant of integers.
    constant: Callable[[int], Optional[list[int]]]
    scalars: bool  # a Placeholder of shape [] is a scalar (GraphDef 22 and newer)

    def shape(self, number: int) -> Shape:
        return self.shapes[number] if number < len(self.shapes) else None

    def integers(self, number: int) -> Optional[list[int]]:
        """The value of an input that is a constant of integers."""
        return self.constant(number) if number < len(self.shapes) else None

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.node.attr[name].b) if name in self.node.attr else default

    def text(self, name: str, default: str) -> str:
        return (
            self.node.attr[name].s.decode("utf-8", "replace") if name in self.node.attr else default
        )


Rule = Callable[[Call], list[Shape]]


def merge(first: Shape, second: Shape) -> Shape:
    """Return the shape of a tensor that has both shapes. Raises Misfit."""
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second):
        raise Misfit(f"shapes {shape_text(first)} and {shape_text(second)} have different ranks")
    return tuple([_same(a, b, first, second) for a, b in zip(first, second)])


def _same(
    one: Optional[int], other: Optional[int], first: Shape = None, second: Shape = None
) -> Optional[int]:
    if one is None or other is None:
        return other if one is None else one
    if one != other:
        shapes = f" in {shape_text(first)} and {shape_text(second)}" if first is not None else ""
        raise Misfit(f"dimensions {one} and {other} differ{shapes}")
    return one


def with_rank(shape: Shape, rank: int) -> tuple[Optional[int], ...]:
    """Return the shape if it has this rank, and one of unknown sizes if its rank is unknown.

    Raises Misfit.
    """
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise Misfit(
            f"shape must be of rank {rank}, and {shape_text(shape)} is of rank {len(shape)}"
        )
    return shape


# Op -> the ranks that its inputs must have, in order; None: any.
RANKS: dict[str, tuple[Optional[int], ...]] = {
    **dict.fromkeys(("ParseExample",), (1, 1)),
    **dict.fromkeys(
        (
            "DecodeJpeg",
            "DecodePng",
            "DecodeBmp",
            "DecodeGif",
            "ReadFile",
            "ParseSingleSequenceExample",
        ),
        (0,),
    ),
    "DecodeAndCropJpeg": (0, 1),
    **dict.fromkeys(
        ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"), (4, 1)
    ),
    "CropAndResize": (4, 2, 1, 1),
    **dict.fromkeys(
        ("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4"),
        (2, 1, 0),
    ),
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative"), (4, 4)),
    "Conv3D": (5, 5),
    **dict.fromkeys(("MaxPool", "AvgPool", "LRN"), (4,)),
    **dict.fromkeys(("MatMul", "SparseMatMul"), (2, 2)),
    "SparseTensorDenseMatMul": (2, 1, 1, 2),
    **dict.fromkeys(("SpaceToDepth", "DepthToSpace"), (4,)),
    "TopKV2": (None, 0),
    "Multinomial": (2, 0),
    "Range": (0, 0, 0),
    "Unique": (1,),
}


def check_ranks(op: str, shapes: Sequence[Shape]) -> None:
    """Raise Misfit if an input of the op has another rank than TensorFlow asks for."""
    for number, (rank, shape) in enumerate(zip(RANKS.get(op, ()), shapes)):
        if rank is not None and shape is not None and len(shape) != rank:
            raise Misfit(
                f"input {number} must be of rank {rank}, and {shape_text(shape)} is of rank"
                f" {len(shape)}"
            )


def _attr_shape(call: Call, name: str = "shape") -> Shape:
    return shape_of(call.node.attr[name].shape) if name in call.node.attr else None


def _placeholder(call: Call) -> list[Shape]:
    shape = _attr_shape(call)
    return [shape if shape or call.scalars else None]


def _with_default(call: Call) -> list[Shape]:
    shape = _attr_shape(call)
    merge(call.shape(0), shape)
    return [shape]


def _broadcast(call: Call) -> list[Shape]:
    first, second = call.shape(0), call.shape(1)
    if first is None or second is None or not call.flag("incompatible_shape_error", True):
        return [None]
    width = max(len(first), len(second))
    pairs = zip((1,) * (width - len(first)) + first, (1,) * (width - len(second)) + second)
    return [tuple([_broadcast_size(a, b, first, second) for a, b in pairs])]


def _broadcast_size(
    one: Optional[int], other: Optional[int], first: Shape, second: Shape
) -> Optional[int]:
    if one == 1 or other == 1:
        return other if one == 1 else one
    return _same(one, other, first, second)


def _bias_add(call: Call) -> list[Shape]:
    if call.text("data_format", "NHWC") != "NHWC" or call.shape(0) is None:
        return [None]
    shape, (size,) = call.shape(0), with_rank(call.shape(1), 1)
    assert shape is not None
    if len(shape) < 2:
        raise Misfit(
            f"shape must be of rank 2 at least, and {shape_text(shape)} is of rank {len(shape)}"
        )
    return [(*shape[:-1], _same(shape[-1], size, shape, (size,)))]


def _mat_mul(call: Call) -> list[Shape]:
    first, second = with_rank(call.shape(0), 2), with_rank(call.shape(1), 2)
    rows, inner = first[::-1] if call.flag("transpose_a") else first
    other, columns = second[::-1] if call.flag("transpose_b") else second
    _same(inner, other, first, second)
    return [(rows, columns)]


def _reshape(call: Call) -> list[Shape]:
    sizes = call.integers(1)
    if sizes is None:
        return [None]
    shape = call.shape(0)
    known = shape is not None and None not in shape
    count = math.prod([size or 0 for size in shape]) if known and shape is not None else None
    given = math.prod([size for size in sizes if size >= 0])
    if count is not None and sizes.count(-1) == 0 and given != count:
        raise Misfit(f"{shape_text(shape)} has {count} elements, and {sizes} has {given}")
    if count is not None and sizes.count(-1) == 1 and given:
        if count % given:
            raise Misfit(f"{shape_text(shape)} has {count} elements, which {sizes} does not divide")
        return [tuple([count // given if size < 0 else size for size in sizes])]
    return [tuple([None if size < 0 else size for size in sizes])]


def _expand_dims(call: Call) -> list[Shape]:
    shape, axis = call.shape(0), call.integers(1)
    if shape is None or axis is None or len(axis) != 1:
        return [None]
    at = axis[0] + len(shape) + 1 if axis[0] < 0 else axis[0]
    if not 0 <= at <= len(shape):
        raise Misfit(f"axis {axis[0]} is not one of {shape_text(shape)}")
    return [(*shape[:at], 1, *shape[at:])]


def _concat(call: Call) -> list[Shape]:
    first = call.node.op == "Concat"
    axis = call.integers(0 if first else len(call.shapes) - 1)
    shapes = call.shapes[1:] if first else call.shapes[:-1]
    ranks = {len(shape) for shape in shapes if shape is not None}
    if axis is None or len(axis) != 1 or not ranks or not shapes:
        return [None]
    if len(ranks) > 1:
        raise Misfit("its inputs have different ranks: " + ", ".join(map(shape_text, shapes)))
    rank = ranks.pop()
    at = axis[0] + rank if axis[0] < 0 else axis[0]
    if not 0 <= at < rank:
        return [None]
    whole: Shape = None
    total: Optional[int] = 0
    for shape in shapes:
        sizes = with_rank(shape, rank)
        whole = merge(whole, (*sizes[:at], None, *sizes[at + 1 :]))
        size = sizes[at]
        total = None if total is None or size is None else total + size
    assert whole is not None
    return [(*whole[:at], total, *whole[at + 1 :])]


def _pack(call: Call) -> list[Shape]:
    merged: Shape = None
    for shape in call.shapes:
        merged = merge(merged, shape)
    axis = call.node.attr["axis"].i if "axis" in call.node.attr else 0
    if merged is None:
        return [None]
    at = axis + len(merged) + 1 if axis < 0 else axis
    return [(*merged[:at], len(call.shapes), *merged[at:])] if 0 <= at <= len(merged) else [None]


def _transpose(call: Call) -> list[Shape]:
    shape, order = call.shape(0), call.integers(1)
    if shape is None or order is None:
        return [None]
    if len(order) != len(shape):
        raise Misfit(f"the permutation has {len(order)} numbers for {shape_text(shape)}")
    if sorted(order) != list(range(len(shape))):
        return [None]
    return [tuple([shape[number] for number in order])]


def _rank_vector(call: Call) -> list[Shape]:
    shape = call.shape(0)
    return [(None if shape is None else len(shape),)]


def _reduction(call: Call) -> list[Shape]:
    shape, axes, keep = call.shape(0), call.integers(1), call.flag("keep_dims")
    if shape is None or axes is None:
        return [shape if shape is None else ((None,) * len(shape) if keep else None)]
    for axis in axes:
        if not -len(shape) <= axis < len(shape):
            raise Misfit(f"axis {axis} is not one of {shape_text(shape)}")
    gone = {axis % len(shape) for axis in axes} if shape else set()
    kept = [
        1 if number in gone else size
        for number, size in enumerate(shape)
        if keep or number not in gone
    ]
    return [tuple(kept)]


def _convolution(call: Call) -> list[Shape]:
    image, kernel = with_rank(call.shape(0), 4), with_rank(call.shape(1), 4)
    if call.text("data_format", "NHWC") != "NHWC":
        return [None]
    channels, depth = image[3], kernel[2]
    if channels is not None and depth and channels % depth:
        raise Misfit(f"{channels} channels are not a multiple of the filter's {depth}")
    return [(image[0], None, None, kernel[3])]


def _pool(call: Call) -> list[Shape]:
    image = with_rank(call.shape(0), 4)
    sizes = list(call.node.attr["ksize"].list.i) if "ksize" in call.node.attr else []
    plain = (
        call.text("data_format", "NHWC") == "NHWC" and len(sizes) == 4 and sizes[0] == sizes[3] == 1
    )
    return [(image[0], None, None, image[3])] if plain else [None]


def _image(call: Call) -> list[Shape]:
    channels = call.node.attr["channels"].i if "channels" in call.node.attr else 0
    return [(None, None, channels or None)]


def _merged(call: Call) -> list[Shape]:
    """All inputs and the output have one shape."""
    merged: Shape = None
    for shape in call.shapes:
        merged = merge(merged, shape)
    return [merged]


def _bias_gradient(call: Call) -> list[Shape]:
    shape = call.shape(0)
    if call.text("data_format", "NHWC") != "NHWC" or shape is None:
        return [None]
    if len(shape) < 2:
        raise Misfit(
            f"shape must be of rank 2 at least, and {shape_text(shape)} is of rank {len(shape)}"
        )
    return [(shape[-1],)]


def _of_sizes(number: int, rank: Optional[int] = None) -> Rule:
    """Return the shape function of an op whose input ``number`` lists the sizes of its output."""

    def infer(call: Call) -> list[Shape]:
        sizes = call.integers(number)
        if sizes is None:
            return [None]
        if rank is not None and len(sizes) != rank:
            raise Misfit(f"the sizes of the output are {sizes}, and it must be of rank {rank}")
        return [tuple([None if size < 0 else size for size in sizes])]

    return infer


def _convolution_gradient(call: Call) -> list[Shape]:
    """Height and width may stand for the four sizes of the output."""
    sizes = call.integers(0)
    return [None] if sizes is not None and len(sizes) == 2 else _of_sizes(0, rank=4)(call)


def _of_rank(rank: int) -> Rule:
    """Return the shape function of an op whose output has the shape of its first input, of a fixed
    rank.
    """
    return lambda call: [with_rank(call.shape(0), rank)]


def _cross_entropy(call: Call) -> list[Shape]:
    (whole,) = _broadcast(call)
    if whole is None:
        return [(None,), (None, None)]
    rows, classes = with_rank(whole, 2)
    return [(rows,), (rows, classes)]


def _sparse_cross_entropy(call: Call) -> list[Shape]:
    rows, classes = with_rank(call.shape(0), 2)
    (labels,) = with_rank(call.shape(1), 1)
    rows = _same(rows, labels, call.shape(0), call.shape(1))
    return [(rows,), (rows, classes)]


def _two_vectors(call: Call) -> list[Shape]:
    with_rank(call.shape(0), 1)
    with_rank(call.shape(1), 1)
    return [(None,), (None,)]


# The gradients that training graphs are full of.
_MERGED = (
    *(
        "ReluGrad",
        "Relu6Grad",
        "LeakyReluGrad",
        "EluGrad",
        "SeluGrad",
        "SoftplusGrad",
        "SoftsignGrad",
    ),
    "AddN",
)
_UNCHANGED = (
    *("TanhGrad", "SigmoidGrad", "InvGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad"),
    *(
        "Identity",
        "StopGradient",
        "PreventGradient",
        "Snapshot",
        "CheckNumerics",
        "Cast",
        "RefIdentity",
        "ZerosLike",
        "OnesLike",
    ),
    *(
        "Relu",
        "Relu6",
        "Elu",
        "Selu",
        "LeakyRelu",
        "Softplus",
        "Softsign",
        "Sigmoid",
        "Tanh",
        "Softmax",
        "LogSoftmax",
    ),
    *(
        "Exp",
        "Expm1",
        "Log",
        "Log1p",
        "Sqrt",
        "Rsqrt",
        "Square",
        "Abs",
        "Neg",
        "Sign",
        "Floor",
        "Ceil",
        "Round",
        "Rint",
    ),
    *(
        "Reciprocal",
        "Inv",
        "Sin",
        "Cos",
        "Tan",
        "Erf",
        "Erfc",
        "IsNan",
        "IsInf",
        "IsFinite",
        "LogicalNot",
    ),
)
_BROADCAST = (
    *(
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "Div",
        "RealDiv",
        "FloorDiv",
        "TruncateDiv",
        "FloorMod",
        "Mod",
        "DivNoNan",
        "MulNoNan",
    ),
    *(
        "Maximum",
        "Minimum",
        "Pow",
        "SquaredDifference",
        "Xdivy",
        "Xlogy",
        "Atan2",
        "LogicalAnd",
        "LogicalOr",
    ),
    *("Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual"),
)

RULES: dict[str, Rule] = {
    "Const": lambda call: [
        shape_of(call.node.attr["value"].tensor.tensor_shape) if "value" in call.node.attr else None
    ],
    "Placeholder": _placeholder,
    "PlaceholderWithDefault": _with_default,
    **dict.fromkeys(
        ("VariableV2", "Variable"), lambda call: [_attr_shape(call) or None]
    ),  # [] also stands for an unknown shape
    **dict.fromkeys(_UNCHANGED, lambda call: [call.shape(0)]),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(_MERGED, _merged),
    "BiasAddGrad": _bias_gradient,
    "Conv2DBackpropInput": _convolution_gradient,
    "Conv2DBackpropFilter": _of_sizes(1, rank=4),
    "AvgPoolGrad": _of_sizes(0, rank=4),
    "MaxPoolGrad": _of_rank(4),
    **dict.fromkeys(("StridedSliceGrad", "Fill"), _of_sizes(0)),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "BroadcastGradientArgs": _two_vectors,
    "Switch": lambda call: [call.shape(0)] * 2,
    "BiasAdd": _bias_add,
    "MatMul": _mat_mul,
    "Reshape": _reshape,
    "ExpandDims": _expand_dims,
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    "Pack": _pack,
    "Transpose": _transpose,
    "Shape": _rank_vector,
    **dict.fromkeys(("Rank", "Size", "VarHandleOp"), lambda call: [()]),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod", "All", "Any"), _reduction),
    "Conv2D": _convolution,
    **dict.fromkeys(("MaxPool", "AvgPool"), _pool),
    **dict.fromkeys(("DecodeJpeg", "DecodePng"), _image),
}
