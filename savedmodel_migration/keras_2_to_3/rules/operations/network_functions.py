"""Functions of ``tf.nn``, products of matrices, images."""

from __future__ import annotations

from typing import Any

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations.expression import (
    Expression,
    Function,
    renamed,
)


def _matmul(
    a: Any,
    b: Any,
    transpose_a: Any = False,
    transpose_b: Any = False,
    adjoint_a: Any = False,
    adjoint_b: Any = False,
) -> Expression:
    left = (
        Expression("swapaxes", {"x": a, "axis1": -1, "axis2": -2})
        if transpose_a or adjoint_a
        else a
    )
    right = (
        Expression("swapaxes", {"x": b, "axis1": -1, "axis2": -2})
        if transpose_b or adjoint_b
        else b
    )
    return Expression("matmul", {"x1": left, "x2": right})


def _einsum(equation: Any, inputs: Any = ()) -> Expression:
    if not inputs:
        raise Refused("Keras 2 did not write down the operands of einsum")
    return Expression("einsum", {"subscripts": equation, "*operands": list(inputs)})


def _resize(
    images: Any,
    size: Any,
    method: Any = "bilinear",
    preserve_aspect_ratio: Any = False,
    antialias: Any = False,
) -> Expression:
    if preserve_aspect_ratio:
        raise Refused("image.resize with preserve_aspect_ratio=True")
    return Expression(
        "image.resize",
        {
            "images": images,
            "size": tuple(size),
            "interpolation": method or "bilinear",
            "antialias": bool(antialias),
        }
        | {"data_format": "channels_last"},
    )


def _l2_normalize(x: Any, axis: Any = None, epsilon: Any = 1e-12) -> Expression:
    axes = tuple(axis) if isinstance(axis, list) else axis
    total = Expression("sum", {"x": Expression("square", {"x": x}), "axis": axes, "keepdims": True})
    scale = Expression("rsqrt", {"x": Expression("maximum", {"x1": total, "x2": epsilon})})
    return Expression("multiply", {"x1": x, "x2": scale})


def _swish(features: Any, beta: Any = 1.0) -> Expression:
    if beta not in (None, 1, 1.0):
        raise Refused(f"swish with beta={beta}")
    return Expression("silu", {"x": features})


def _axis(target: str) -> Function:
    def make(logits: Any, axis: Any = -1) -> Expression:
        return Expression(target, {"x": logits, "axis": -1 if axis is None else axis})

    return Function("logits axis", make)


def _gelu(features: Any, approximate: Any = False) -> Expression:
    return Expression("gelu", {"x": features, "approximate": bool(approximate)})


def _last(data_format: Any) -> None:
    """Raise Refused unless channels are last."""
    if data_format not in (None, "NHWC", "NWC", "NDHWC"):
        raise Refused(f"data_format={data_format}: channels that are not last")


def _sizes(value: Any, rank: int) -> tuple[int, ...]:
    """Return a number for each of ``rank`` middle axes of a number, of one for each of them or for
    all axes. Raises Refused.
    """
    listed = [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(value)]
    if len(listed) == rank + 2 and listed[0] == listed[-1] == 1:
        listed = listed[1:-1]
    if len(listed) not in (1, rank):
        raise Refused(f"a window of {value}")
    return tuple(listed * rank)[:rank]


def _padding(value: Any) -> str:
    found = str(value or "VALID").lower()
    if found not in ("same", "valid"):
        raise Refused(f"padding={value}")
    return found


def _pooling(target: str) -> Function:
    def make(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = None
    ) -> Expression:
        _last(data_format)
        rank = len(input.shape) - 2
        given = {"inputs": input, "padding": _padding(padding), "data_format": "channels_last"}
        return Expression(
            target, {**given, "pool_size": _sizes(ksize, rank), "strides": _sizes(strides, rank)}
        )

    return Function("input ksize strides padding data_format", make)


def _convolution(
    input: Any,
    filters: Any = None,
    strides: Any = 1,
    padding: Any = None,
    data_format: Any = None,
    dilations: Any = None,
    filter: Any = None,
) -> Expression:
    _last(data_format)
    filters = filter if filters is None else filters  # its name in TF 1.x
    rank = len(input.shape) - 2
    given = {
        "inputs": input,
        "kernel": filters,
        "padding": _padding(padding),
        "data_format": "channels_last",
    }
    return Expression(
        "conv",
        {**given, "strides": _sizes(strides, rank), "dilation_rate": _sizes(dilations or 1, rank)},
    )


def _bias_add(value: Any, bias: Any, data_format: Any = None) -> Expression:
    _last(data_format)
    return Expression("add", {"x1": value, "x2": bias})


def _batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any
) -> Expression:
    factor = Expression("rsqrt", {"x": Expression("add", {"x1": variance, "x2": variance_epsilon})})
    factor = factor if scale is None else Expression("multiply", {"x1": factor, "x2": scale})
    shift = Expression("multiply", {"x1": mean, "x2": factor})
    left = (
        Expression("negative", {"x": shift})
        if offset is None
        else Expression("subtract", {"x1": offset, "x2": shift})
    )
    return Expression("add", {"x1": Expression("multiply", {"x1": x, "x2": factor}), "x2": left})


def _moments(x: Any, axes: Any, shift: Any = None, keepdims: Any = False) -> Expression:
    return Expression(
        "moments",
        {
            "x": x,
            "axes": tuple(axes) if isinstance(axes, list) else axes,
            "keepdims": bool(keepdims),
        },
    )


def _crelu(features: Any, axis: Any = -1) -> Expression:
    both = [
        Expression("relu", {"x": item})
        for item in (features, Expression("negative", {"x": features}))
    ]
    return Expression("concatenate", {"xs": both, "axis": -1 if axis is None else axis})


def _blocks(target: str) -> Function:
    def make(input: Any, block_size: Any, data_format: Any = None) -> Expression:
        _last(data_format)
        return Expression(
            target, {"x": input, "block_size": block_size, "data_format": "channels_last"}
        )

    return Function("input block_size data_format", make)


def _top_k(input: Any, k: Any = 1, sorted: Any = True) -> Expression:
    return Expression("top_k", {"x": input, "k": k, "sorted": bool(sorted)})


def _band_part(input: Any, num_lower: Any, num_upper: Any) -> Expression:
    if (num_lower, num_upper) == (0, -1):
        return Expression("triu", {"x": input})
    if (num_lower, num_upper) == (-1, 0):
        return Expression("tril", {"x": input})
    raise Refused(f"a band of {num_lower} below and {num_upper} above the diagonal")


def _matvec(a: Any, b: Any) -> Expression:
    column = Expression("expand_dims", {"x": b, "axis": -1})
    return Expression("squeeze", {"x": Expression("matmul", {"x1": a, "x2": column}), "axis": -1})


def _embedding_lookup(params: Any, ids: Any, partition_strategy: Any = None) -> Expression:
    return Expression("take", {"x": params, "indices": ids, "axis": 0})


_PRODUCT = "*a *b transpose_a transpose_b adjoint_a adjoint_b"
FUNCTIONS = {
    "linalg.matmul": Function(
        _PRODUCT,
        _matmul,
        a_is_sparse=False,
        b_is_sparse=False,
        output_type=None,
        grad_a=False,
        grad_b=False,
    ),
    "linalg.matvec": Function(
        "*a *b", _matvec, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False
    ),
    "tensordot": renamed("tensordot", "*a:x1 *b:x2 axes"),
    "linalg.band_part": Function("input num_lower num_upper", _band_part),
    "math.top_k": Function("input k sorted", _top_k, index_type=None),
    "nn.top_k": Function("input k sorted", _top_k, index_type=None),
    **{f"nn.avg_pool{rank}": _pooling("average_pool") for rank in ("", "1d", "2d", "3d")},
    **{f"nn.max_pool{rank}": _pooling("max_pool") for rank in ("", "1d", "2d", "3d")},
    **{
        name: Function(
            "input *filters strides padding data_format dilations *filter",
            _convolution,
            use_cudnn_on_gpu=True,
        )
        for name in ("nn.conv2d", "nn.conv1d", "nn.convolution")
    },
    "nn.bias_add": Function("*value *bias data_format", _bias_add),
    "nn.batch_normalization": Function(
        "*x *mean *variance *offset *scale variance_epsilon", _batch_normalization
    ),
    "nn.moments": Function("x axes shift keepdims", _moments),
    "nn.crelu": Function("features axis", _crelu),
    "nn.depth_to_space": _blocks("depth_to_space"),
    "nn.space_to_depth": _blocks("space_to_depth"),
    "nn.embedding_lookup": Function(
        "*params ids partition_strategy", _embedding_lookup, max_norm=None
    ),
    "image.rgb_to_grayscale": renamed("image.rgb_to_grayscale", "images"),
    "image.flip_left_right": Function(
        "image", lambda image: Expression("flip", {"x": image, "axis": -2})
    ),
    "image.flip_up_down": Function(
        "image", lambda image: Expression("flip", {"x": image, "axis": -3})
    ),
    "einsum": Function("equation inputs", _einsum),
    "image.resize": Function("images size method preserve_aspect_ratio antialias", _resize),
    "math.l2_normalize": Function("x axis epsilon", _l2_normalize, dim=None),
    "nn.log_sigmoid": renamed("log_sigmoid", "x"),
    "nn.relu": renamed("relu", "features:x"),
    "nn.relu6": renamed("relu6", "features:x"),
    "nn.elu": renamed("elu", "features:x"),
    "nn.selu": renamed("selu", "features:x"),
    "nn.gelu": Function("features approximate", _gelu),
    "nn.leaky_relu": renamed("leaky_relu", "features:x alpha:negative_slope"),
    "nn.silu": Function("features beta", _swish),
    "nn.swish": Function("features beta", _swish),
    "nn.softmax": _axis("softmax"),
    "nn.log_softmax": _axis("log_softmax"),
    "math.softplus": renamed("softplus", "features:x"),
    "nn.softplus": renamed("softplus", "features:x"),
    "nn.softsign": renamed("softsign", "features:x"),
}
