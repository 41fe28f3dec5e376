"""Ops of graphs: TF 2.0 to 2.3 keep a node of a graph for each operation between layers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations import (
    arithmetic,
    arrays,
    network_functions,
    shapes,
)
from savedmodel_migration.keras_2_to_3.rules.operations.expression import Expression
from savedmodel_migration.keras_2_to_3.rules.operations.sizes import (
    FOLDS,
    Sizes,
    folded,
    sizes_of,
)

_FUNCTIONS = {
    **arithmetic.FUNCTIONS,
    **arrays.FUNCTIONS,
    **shapes.FUNCTIONS,
    **network_functions.FUNCTIONS,
}
Node = Callable[[Sequence[Any], Mapping[str, Any]], Any]
# Type of an op -> the function of TensorFlow that makes it, and what its inputs are among that
# function's arguments.
_PLAIN = {
    "AddV2": "math.add", "Add": "math.add", "Sub": "math.subtract", "Mul": "math.multiply",
    "RealDiv": "math.truediv", "Div": "math.truediv", "Pow": "math.pow", "Maximum": "math.maximum",
    "Minimum": "math.minimum", "FloorDiv": "math.floordiv", "FloorMod": "math.floormod",
    "Greater": "math.greater", "GreaterEqual": "math.greater_equal", "Less": "math.less",
    "LessEqual": "math.less_equal", "Equal": "math.equal", "NotEqual": "math.not_equal",
    "LogicalAnd": "math.logical_and", "LogicalOr": "math.logical_or",
    "LogicalNot": "math.logical_not", "Neg": "math.negative", "Abs": "math.abs", "Exp": "math.exp",
    "Log": "math.log", "Log1p": "math.log1p", "Sqrt": "math.sqrt", "Rsqrt": "math.rsqrt",
    "Square": "math.square", "Sign": "math.sign", "Floor": "math.floor", "Ceil": "math.ceil",
    "Round": "math.round", "Sin": "math.sin", "Cos": "math.cos", "Tanh": "math.tanh",
    "Sigmoid": "math.sigmoid", "Erf": "math.erf", "Softplus": "math.softplus", "Relu": "nn.relu",
    "Relu6": "nn.relu6", "Elu": "nn.elu", "Selu": "nn.selu", "Softmax": "nn.softmax",
    "LogSoftmax": "nn.log_softmax", "Identity": "identity", "StopGradient": "stop_gradient",
    "SquaredDifference": "math.squared_difference", "SelectV2": "where", "Reshape": "reshape",
    "Transpose": "transpose", "ExpandDims": "expand_dims", "Tile": "tile",
    "ZerosLike": "zeros_like", "OnesLike": "ones_like", "BroadcastTo": "broadcast_to",
    "ReverseV2": "reverse", "DivNoNan": "math.divide_no_nan", "Softsign": "nn.softsign",
    "Reciprocal": "math.reciprocal", "Expm1": "math.expm1", "Tan": "math.tan", "Sinh": "math.sinh",
    "Cosh": "math.cosh", "Asin": "math.asin", "Acos": "math.acos", "Atan": "math.atan",
    "Atan2": "math.atan2", "IsNan": "math.is_nan", "IsInf": "math.is_inf",
    "IsFinite": "math.is_finite", "Asinh": "math.asinh", "Acosh": "math.acosh",
    "Atanh": "math.atanh", "Erfc": "math.erfc", "Erfinv": "math.erfinv", "Inv": "math.reciprocal",
    "Rint": "math.round", "EnsureShape": "ensure_shape", "Slice": "slice",
    "MatrixBandPart": "linalg.band_part",
}  # fmt: skip
_REDUCTIONS = {
    "Sum": "sum",
    "Mean": "mean",
    "Max": "max",
    "Min": "min",
    "Prod": "prod",
    "Any": "any",
    "All": "all",
}
_WINDOWS = {
    "sizes": "ksizes",
    "strides": "strides",
    "rates": "rates",
}  # of patches: argument -> attr
_DTYPES = {
    "DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_HALF": "float16", "DT_BFLOAT16": "bfloat16",
    "DT_INT32": "int32", "DT_INT64": "int64", "DT_BOOL": "bool", "DT_UINT8": "uint8",
    "DT_INT8": "int8", "DT_INT16": "int16",
}  # fmt: skip


def _plain(name: str) -> Node:
    function = _FUNCTIONS[name]

    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if len(inputs) > len(function.names):
            raise Refused(f"an op with {len(inputs)} inputs")
        sizes = folded(name, inputs)
        if sizes is not None:
            return sizes
        given = [_array(item, attrs) for item in inputs] if name in arithmetic.FUNCTIONS else inputs
        return function(dict(zip(function.names, given)))

    return make


def _array(value: Any, attrs: Mapping[str, Any]) -> Any:
    """Return the array of a constant that is written as a list, of the type of the op's
    operands.
    """
    if not isinstance(value, (list, tuple)):
        return value
    array = np.array(value)
    return array if array.dtype == bool or "T" not in attrs else array.astype(_dtype(attrs, "T"))


def _reduction(target: str) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if isinstance(inputs[0], Sizes) and target == "prod" and inputs[1] in (0, [0]):
            return inputs[0].product()
        axes = tuple(inputs[1]) if isinstance(inputs[1], (list, tuple)) else inputs[1]
        return Expression(
            target, {"x": inputs[0], "axis": axes, "keepdims": _flag(attrs, "keep_dims")}
        )

    return make


def _dtype(attrs: Mapping[str, Any], name: str) -> str:
    found = attrs.get(name, {}).get("type")
    if found not in _DTYPES:
        raise Refused(f"an op with {name}={found}")
    return _DTYPES[found]


def _int(attrs: Mapping[str, Any], name: str, default: int = 0) -> int:
    return int(attrs.get(name, {}).get("i", default))


def _flag(attrs: Mapping[str, Any], name: str) -> bool:
    return bool(attrs.get(name, {}).get("b", False))


def _cast(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if isinstance(inputs[0], Sizes):
        return FOLDS["cast"](inputs[0], _dtype(attrs, "DstT"))
    return Expression("cast", {"x": inputs[0], "dtype": _dtype(attrs, "DstT")})


def _text(attrs: Mapping[str, Any], name: str, default: str = "") -> str:
    if name not in attrs:
        return default
    try:
        return base64.b64decode(attrs[name].get("s", ""), validate=True).decode()
    except (ValueError, TypeError):
        raise Refused(f"an op with {name} that cannot be read") from None


def _spatial(attrs: Mapping[str, Any], name: str, rank: int = 2) -> tuple[int, ...]:
    """Return the numbers of the middle axes in a list of one for each axis, the channels last.

    Raises Refused for others.
    """
    sizes = [int(item) for item in attrs.get(name, {}).get("list", {}).get("i", [])] or [1] * (
        rank + 2
    )
    last = "NDHWC" if rank == 3 else "NHWC"
    if _text(attrs, "data_format", last) != last or sizes[0] != 1 or sizes[-1] != 1:
        raise Refused(f"an op with {name}={sizes}, or with channels that are not last")
    return tuple(sizes[1:-1])


def _padding(attrs: Mapping[str, Any]) -> str:
    found = _text(attrs, "padding")
    if found not in ("SAME", "VALID"):
        raise Refused(f"an op with padding={found!r}")
    return found.lower()


def _convolution(target: str, rank: int) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        given = {
            "inputs": inputs[0],
            "kernel": inputs[1],
            "padding": _padding(attrs),
            "data_format": "channels_last",
        }
        steps = {
            "strides": _spatial(attrs, "strides", rank),
            "dilation_rate": _spatial(attrs, "dilations", rank),
        }
        return Expression(target, {**given, **steps})

    return make


def _pooling(target: str, rank: int) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        given = {"inputs": inputs[0], "padding": _padding(attrs), "data_format": "channels_last"}
        steps = {
            "pool_size": _spatial(attrs, "ksize", rank),
            "strides": _spatial(attrs, "strides", rank),
        }
        return Expression(target, {**given, **steps})

    return make


def _resized(method: str) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if _flag(attrs, "align_corners") or not _flag(attrs, "half_pixel_centers"):
            raise Refused("images are resized without half_pixel_centers, as in TF 1.x")
        return _FUNCTIONS["image.resize"](
            {"images": inputs[0], "size": inputs[1], "method": method}
        )

    return make


def _matmul(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    names = {"transpose_a": "adj_x", "transpose_b": "adj_y"}
    flags = {name: _flag(attrs, name) or _flag(attrs, other) for name, other in names.items()}
    return _FUNCTIONS["linalg.matmul"]({"a": inputs[0], "b": inputs[1], **flags})


def _squeeze(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    found = attrs.get("squeeze_dims", attrs.get("axis", {})).get("list", {}).get("i", [])
    return _FUNCTIONS["squeeze"](
        {"input": inputs[0], "axis": [int(item) for item in found] or None}
    )


def _strided_slice(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    begin, end, step = inputs[1:4]
    if not all(isinstance(part, (list, tuple)) for part in (begin, end, step)):
        raise Refused("a slice with ends that are computed")
    masks = {
        name: _int(attrs, f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    key: list[Any] = []
    for number in range(len(begin)):
        bit = 1 << number
        if masks["ellipsis"] & bit:
            key.append(...)
        elif masks["new_axis"] & bit:
            key.append(None)
        elif masks["shrink_axis"] & bit:
            key.append(int(begin[number]))
        else:
            ends = (
                None if masks["begin"] & bit else begin[number],
                None if masks["end"] & bit else end[number],
            )
            key.append(slice(*ends, step[number]))
    if isinstance(inputs[0], Sizes):
        return inputs[0].item(key[0])
    return Expression("get_item", {"x": inputs[0], "key": tuple(key)})


def _arg(target: str) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        found = Expression(target, {"x": inputs[0], "axis": inputs[1]})
        return Expression(
            "cast",
            {
                "x": found,
                "dtype": _dtype(attrs, "output_type") if "output_type" in attrs else "int64",
            },
        )

    return make


def _bias(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    _spatial(attrs, "")  # refuses channels that are not last
    return Expression("add", {"x1": inputs[0], "x2": inputs[1]})


def _gather(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if _int(attrs, "batch_dims"):
        raise Refused("gather with batch_dims")
    if isinstance(inputs[0], Sizes) and isinstance(inputs[1], (int, list)):
        return inputs[0].gathered(inputs[1])
    return Expression(
        "take", {"x": inputs[0], "indices": inputs[1], "axis": inputs[2] if len(inputs) > 2 else 0}
    )


def _one_hot(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    given = dict(zip(("indices", "depth", "on_value", "off_value"), inputs))
    return _FUNCTIONS["one_hot"](
        {**given, "axis": _int(attrs, "axis", -1), "dtype": _dtype(attrs, "T")}
    )


def _blocks(function: str) -> Node:
    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        layout = _text(attrs, "data_format", "NHWC")
        given = {"input": inputs[0], "block_size": _int(attrs, "block_size"), "data_format": layout}
        return _FUNCTIONS[function](given)

    return make


def _square_blocks(function: str) -> Node:
    """Return the translation of an op of TF 1.x whose blocks are squares."""

    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        block = [_int(attrs, "block_size")] * 2
        return _FUNCTIONS[function](
            dict(zip(_FUNCTIONS[function].names, (inputs[0], block, inputs[1])))
        )

    return make


def _patches(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    listed = {
        name: attrs.get(attr, {}).get("list", {}).get("i", []) for name, attr in _WINDOWS.items()
    }
    windows = {name: list(map(int, sizes)) for name, sizes in listed.items()}
    return _FUNCTIONS["image.extract_patches"](
        {"images": inputs[0], "padding": _text(attrs, "padding"), **windows}
    )


def _top_k(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if attrs.get("index_type", {}).get("type", "DT_INT32") != "DT_INT32":
        raise Refused("top_k with indices that are not int32")
    ordered = bool(attrs.get("sorted", {}).get("b", True))  # a writer may leave out the default
    return _FUNCTIONS["math.top_k"]({"input": inputs[0], "k": inputs[1], "sorted": ordered})


def _diagonal(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if len(inputs) > 1 and inputs[1] != 0:
        raise Refused("diagonals beside the main one")
    return _FUNCTIONS["linalg.diag_part"]({"input": inputs[0]})


def _select(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    ranks = {len(item.shape) for item in inputs if hasattr(item, "shape")}
    if len(ranks) > 1 or not all(hasattr(item, "shape") for item in inputs):
        raise Refused("a choice of whole rows, as in TF 1.x")
    return _FUNCTIONS["where"](dict(zip(("condition", "x", "y"), inputs)))


def _on_images(target: str, inputs: Sequence[Any]) -> Any:
    return Expression(target, {"images": inputs[0], "data_format": "channels_last"})


def _inverse(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if _flag(attrs, "adjoint"):
        raise Refused("the adjoint of an inverse")
    return Expression("linalg.inv", {"x": inputs[0]})


def _called(function: str, arguments: str, flags: str = "", texts: str = "") -> Node:
    """Return a call of a known function: its arguments in the order of the op's inputs, and those
    that are attrs of the op.
    """

    def make(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        given = dict(zip(arguments.split(), inputs))
        given.update({name: _flag(attrs, name) for name in flags.split()})
        return _FUNCTIONS[function](
            {**given, **{name: _text(attrs, name) for name in texts.split()}}
        )

    return make


GRAPH_OPS: dict[str, Node] = {
    **{op: _plain(name) for op, name in _PLAIN.items()},
    **{op: _reduction(target) for op, target in _REDUCTIONS.items()},
    "Cast": _cast,
    "Shape": lambda inputs, attrs: sizes_of(inputs[0]),
    "Einsum": lambda inputs, attrs: _FUNCTIONS["einsum"](
        {"equation": _text(attrs, "equation"), "inputs": list(inputs)}
    ),
    "ResizeBilinear": _resized("bilinear"),
    "ResizeNearestNeighbor": _resized("nearest"),
    "ResizeBicubic": _resized("bicubic"),
    "ConcatV2": lambda inputs, attrs: shapes.concatenated(inputs[:-1], inputs[-1]),
    "Pack": lambda inputs, attrs: shapes.stacked(inputs, _int(attrs, "axis")),
    **dict.fromkeys(("MatMul", "BatchMatMulV3", "BatchMatMulV2", "BatchMatMul"), _matmul),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Split": lambda inputs, attrs: Expression(
        "split",
        {"x": inputs[1], "indices_or_sections": _int(attrs, "num_split"), "axis": inputs[0]},
    ),
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    **dict.fromkeys(("GatherV2", "Gather"), _gather),
    "OneHot": _one_hot,
    **dict.fromkeys(("Pad", "PadV2"), _called("pad", "tensor paddings constant_values")),
    "ClipByValue": _called("clip_by_value", "t clip_value_min clip_value_max"),
    "LeakyRelu": lambda inputs, attrs: Expression(
        "leaky_relu",
        {"x": inputs[0], "negative_slope": float(attrs.get("alpha", {}).get("f", 0.2))},
    ),
    "Conv2D": _convolution("conv", 2),
    "Conv3D": _convolution("conv", 3),
    "DepthwiseConv2dNative": _convolution("depthwise_conv", 2),
    "MaxPool": _pooling("max_pool", 2),
    "MaxPool3D": _pooling("max_pool", 3),
    "AvgPool": _pooling("average_pool", 2),
    "AvgPool3D": _pooling("average_pool", 3),
    "SpaceToBatchND": _called("space_to_batch", "input block_shape paddings"),
    "BatchToSpaceND": _called("batch_to_space", "input block_shape crops"),
    "SpaceToBatch": _square_blocks("space_to_batch"),
    "BatchToSpace": _square_blocks("batch_to_space"),
    "ExtractImagePatches": _patches,
    **dict.fromkeys(
        ("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"),
        _called("linalg.diag", "diagonal k num_rows num_cols padding_value"),
    ),
    **dict.fromkeys(
        ("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"),
        _called("linalg.set_diag", "input diagonal k"),
    ),
    "ConjugateTranspose": _called("transpose", "a perm"),
    "Concat": lambda inputs, attrs: shapes.concatenated(inputs[1:], inputs[0]),
    "DepthToSpace": _blocks("nn.depth_to_space"),
    "SpaceToDepth": _blocks("nn.space_to_depth"),
    "TopKV2": _top_k,
    "EuclideanNorm": lambda inputs, attrs: _FUNCTIONS["math.reduce_euclidean_norm"](
        {"input_tensor": inputs[0], "axis": inputs[1], "keepdims": _flag(attrs, "keep_dims")}
    ),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _diagonal),
    "Select": _select,
    "Roll": _called("roll", "input shift axis"),
    "MatrixInverse": _inverse,
    "MatrixDeterminant": lambda inputs, attrs: Expression("linalg.det", {"x": inputs[0]}),
    "Cholesky": lambda inputs, attrs: Expression("linalg.cholesky", {"x": inputs[0]}),
    "RGBToHSV": lambda inputs, attrs: _on_images("image.rgb_to_hsv", inputs),
    "HSVToRGB": lambda inputs, attrs: _on_images("image.hsv_to_rgb", inputs),
    "BiasAdd": _bias,
    "MirrorPad": _called("pad", "tensor paddings", texts="mode"),
    "AddN": lambda inputs, attrs: _FUNCTIONS["math.add_n"]({"inputs": list(inputs)}),
    "Unpack": lambda inputs, attrs: Expression(
        "unstack", {"x": inputs[0], "num": _int(attrs, "num"), "axis": _int(attrs, "axis")}
    ),
    "SplitV": _called("split", "value num_or_size_splits axis"),
    "Cumsum": _called("math.cumsum", "x axis", flags="exclusive reverse"),
    "Cumprod": _called("math.cumprod", "x axis", flags="exclusive reverse"),
}
