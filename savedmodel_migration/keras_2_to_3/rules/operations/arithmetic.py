"""Arithmetic and elementwise functions, and reductions over axes."""

from __future__ import annotations

from typing import Any

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations.expression import (
    Expression,
    Function,
    array_of,
    is_numbers,
    renamed,
)

_TWO = {
    "math.add": "add", "__operators__.add": "add", "math.add_v2": "add",
    "math.subtract": "subtract", "math.multiply": "multiply", "math.truediv": "true_divide",
    "math.divide": "true_divide", "math.pow": "power", "math.maximum": "maximum",
    "math.minimum": "minimum", "math.floordiv": "floor_divide", "math.floormod": "mod",
    "math.mod": "mod", "math.atan2": "arctan2", "math.logical_and": "logical_and",
    "math.logical_or": "logical_or", "math.divide_no_nan": "divide_no_nan",
    "math.greater": "greater", "math.greater_equal": "greater_equal", "math.less": "less",
    "math.less_equal": "less_equal", "math.equal": "equal", "math.not_equal": "not_equal",
    "__operators__.eq": "equal", "__operators__.ne": "not_equal", "math.logical_xor": "logical_xor",
    "floor_div": "floor_divide",
}  # fmt: skip
_ONE = {
    "math.negative": "negative", "math.abs": "abs", "math.exp": "exp", "math.expm1": "expm1",
    "math.log": "log", "math.log1p": "log1p", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt",
    "math.square": "square", "math.sign": "sign", "math.floor": "floor", "math.ceil": "ceil",
    "math.round": "round", "math.sin": "sin", "math.cos": "cos", "math.tan": "tan",
    "math.sinh": "sinh", "math.cosh": "cosh", "math.tanh": "tanh", "math.asin": "arcsin",
    "math.acos": "arccos", "math.atan": "arctan", "math.erf": "erf",
    "math.logical_not": "logical_not", "math.is_nan": "isnan", "math.is_finite": "isfinite",
    "math.is_inf": "isinf", "math.reciprocal": "reciprocal", "math.sigmoid": "sigmoid",
    "nn.sigmoid": "sigmoid", "nn.tanh": "tanh", "math.softplus": "softplus",
    "nn.softplus": "softplus", "nn.softsign": "softsign", "math.softsign": "softsign",
    "zeros_like": "zeros_like", "ones_like": "ones_like", "identity": "copy",
    "math.asinh": "arcsinh", "math.acosh": "arccosh", "math.atanh": "arctanh",
    "math.erfinv": "erfinv", "math.erfc": "erfc", "math.log_sigmoid": "log_sigmoid",
}  # fmt: skip
_NAMES = {
    "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min",
    "reduce_prod": "prod", "reduce_any": "any", "reduce_all": "all", "reduce_std": "std",
    "reduce_variance": "var", "reduce_logsumexp": "logsumexp",
}  # fmt: skip


def _two(target: str) -> Function:
    return renamed(target, "*x:x1 *y:x2")


def _squared_difference(x: Any, y: Any) -> Expression:
    return Expression("square", {"x": Expression("subtract", {"x1": x, "x2": y})})


def _where(condition: Any, x: Any = None, y: Any = None) -> Expression:
    if x is None or y is None:
        raise Refused("where of a condition alone, whose result has a computed shape")
    choice = array_of(condition, ["bool"]) if is_numbers(condition) else condition
    return Expression("where", {"condition": choice, "x1": x, "x2": y})


def _add_n(inputs: Any) -> Expression:
    total = inputs[0]
    for item in inputs[1:]:
        total = Expression("add", {"x1": total, "x2": item})
    return total if isinstance(total, Expression) else Expression("copy", {"x": total})


def _reduction(target: str) -> Function:
    def make(input_tensor: Any, axis: Any = None, keepdims: Any = False) -> Expression:
        axes = tuple(axis) if isinstance(axis, list) else axis
        return Expression(target, {"x": input_tensor, "axis": axes, "keepdims": bool(keepdims)})

    return Function("input_tensor axis keepdims", make)


def _arg(target: str) -> Function:
    def make(input: Any, axis: Any = None, output_type: Any = "int64") -> Expression:
        found = Expression(target, {"x": input, "axis": 0 if axis is None else axis})
        return Expression("cast", {"x": found, "dtype": output_type or "int64"})

    return Function("input axis output_type", make)


def _cumulated(target: str) -> Function:
    def make(x: Any, axis: Any = 0, exclusive: Any = False, reverse: Any = False) -> Expression:
        if exclusive:
            raise Refused(f"keras.ops has no exclusive {target}")
        if not reverse:
            return Expression(target, {"x": x, "axis": axis})
        flipped = Expression("flip", {"x": x, "axis": axis})
        cumulated = Expression(target, {"x": flipped, "axis": axis})
        return Expression("flip", {"x": cumulated, "axis": axis})

    return Function("x axis exclusive reverse", make)


def _count_nonzero(
    input: Any, axis: Any = None, keepdims: Any = False, dtype: Any = "int64"
) -> Expression:
    unequal = Expression(
        "cast", {"x": Expression("not_equal", {"x1": input, "x2": 0}), "dtype": dtype or "int64"}
    )
    return Expression(
        "sum",
        {
            "x": unequal,
            "axis": tuple(axis) if isinstance(axis, list) else axis,
            "keepdims": bool(keepdims),
        },
    )


def _euclidean(input_tensor: Any, axis: Any = None, keepdims: Any = False) -> Expression:
    axes = tuple(axis) if isinstance(axis, list) else axis
    squares = Expression("square", {"x": input_tensor})
    return Expression(
        "sqrt", {"x": Expression("sum", {"x": squares, "axis": axes, "keepdims": bool(keepdims)})}
    )


def _norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: Any = False,
    keep_dims: Any = None,
) -> Expression:
    keepdims = keepdims or keep_dims
    order = None if ord == "euclidean" else ord
    axes = tuple(axis) if isinstance(axis, list) else axis
    return Expression("norm", {"x": tensor, "ord": order, "axis": axes, "keepdims": bool(keepdims)})


FUNCTIONS = {
    **{name: _two(target) for name, target in _TWO.items()},
    **{name: renamed(target, "x") for name, target in _ONE.items()},
    "identity": renamed("copy", "input:x"),
    "zeros_like": renamed("zeros_like", "input:x", dtype=None, layout=None),
    "ones_like": renamed("ones_like", "input:x", dtype=None, layout=None),
    "math.equal": _two("equal"),
    "__operators__.eq": renamed("equal", "*self:x1 *other:x2"),
    "__operators__.ne": renamed("not_equal", "*self:x1 *other:x2"),
    "clip_by_value": renamed("clip", "*t:x *clip_value_min:x_min *clip_value_max:x_max"),
    "math.squared_difference": Function("*x *y", _squared_difference),
    "math.scalar_mul": renamed("multiply", "*scalar:x1 *x:x2"),
    "scalar_mul": renamed("multiply", "*scalar:x1 *x:x2"),
    "math.add_n": Function("inputs", _add_n),
    "stop_gradient": renamed("stop_gradient", "input:variable"),
    "cast": renamed("cast", "x dtype"),
    **dict.fromkeys(("where", "compat.v1.where_v2"), Function("condition *x *y", _where)),
    **{f"math.{name}": _reduction(target) for name, target in _NAMES.items()},
    "math.argmax": _arg("argmax"),
    "math.argmin": _arg("argmin"),
    **dict.fromkeys(("norm", "linalg.norm"), Function("tensor ord axis keepdims keep_dims", _norm)),
    "math.cumsum": _cumulated("cumsum"),
    "math.cumprod": _cumulated("cumprod"),
    "math.count_nonzero": Function("input axis keepdims dtype", _count_nonzero),
    "math.reduce_euclidean_norm": Function("input_tensor axis keepdims", _euclidean),
}
