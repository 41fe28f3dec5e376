"""Functions of ``tf.nn``, products of matrices, images."""

from __future__ import annotations

from typing import Any

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.operations.expression import Expression, Function, renamed


def _matmul(
    a: Any, b: Any, transpose_a: Any = False, transpose_b: Any = False, adjoint_a: Any = False, adjoint_b: Any = False
) -> Expression:
    left = Expression("swapaxes", {"x": a, "axis1": -1, "axis2": -2}) if transpose_a or adjoint_a else a
    right = Expression("swapaxes", {"x": b, "axis1": -1, "axis2": -2}) if transpose_b or adjoint_b else b
    return Expression("matmul", {"x1": left, "x2": right})


def _einsum(equation: Any, inputs: Any = ()) -> Expression:
    if not inputs:
        raise Refused("Keras 2 did not write down the operands of einsum")
    return Expression("einsum", {"subscripts": equation, "*operands": list(inputs)})


def _resize(
    images: Any, size: Any, method: Any = "bilinear", preserve_aspect_ratio: Any = False, antialias: Any = False
) -> Expression:
    if preserve_aspect_ratio:
        raise Refused("image.resize with preserve_aspect_ratio=True")
    return Expression(
        "image.resize",
        {"images": images, "size": tuple(size), "interpolation": method or "bilinear", "antialias": bool(antialias)}
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


FUNCTIONS = {
    "linalg.matmul": Function("a b transpose_a transpose_b adjoint_a adjoint_b", _matmul, a_is_sparse=False, b_is_sparse=False),
    "einsum": Function("equation inputs", _einsum),
    "image.resize": Function("images size method preserve_aspect_ratio antialias", _resize),
    "math.l2_normalize": Function("x axis epsilon", _l2_normalize, dim=None),
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
