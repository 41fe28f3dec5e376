"""Arithmetic and elementwise functions."""

from __future__ import annotations

from typing import Any

from compat_matrix.keras_migration.rules.operations.expression import Expression, Function, renamed

_TWO = {
    "math.add": "add", "__operators__.add": "add", "math.add_v2": "add", "math.subtract": "subtract", "math.multiply": "multiply",
    "math.truediv": "true_divide", "math.divide": "true_divide", "math.pow": "power", "math.maximum": "maximum",
    "math.minimum": "minimum", "math.floordiv": "floor_divide", "math.floormod": "mod", "math.mod": "mod",
    "math.atan2": "arctan2",
    "math.logical_and": "logical_and", "math.logical_or": "logical_or", "math.divide_no_nan": "divide_no_nan",
    "math.greater": "greater", "math.greater_equal": "greater_equal", "math.less": "less", "math.less_equal": "less_equal",
    "math.equal": "equal", "math.not_equal": "not_equal", "__operators__.eq": "equal", "__operators__.ne": "not_equal",
    "math.logical_xor": "logical_xor",
}  # fmt: skip
_ONE = {
    "math.negative": "negative", "math.abs": "abs", "math.exp": "exp", "math.expm1": "expm1", "math.log": "log",
    "math.log1p": "log1p", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.square": "square", "math.sign": "sign",
    "math.floor": "floor", "math.ceil": "ceil", "math.round": "round", "math.sin": "sin", "math.cos": "cos", "math.tan": "tan",
    "math.sinh": "sinh", "math.cosh": "cosh", "math.tanh": "tanh", "math.asin": "arcsin", "math.acos": "arccos",
    "math.atan": "arctan", "math.erf": "erf", "math.logical_not": "logical_not", "math.is_nan": "isnan",
    "math.is_finite": "isfinite",
    "math.is_inf": "isinf", "math.reciprocal": "reciprocal", "math.sigmoid": "sigmoid", "nn.sigmoid": "sigmoid",
    "nn.tanh": "tanh", "math.softplus": "softplus", "nn.softplus": "softplus", "nn.softsign": "softsign",
    "math.softsign": "softsign", "zeros_like": "zeros_like", "ones_like": "ones_like", "identity": "copy",
}  # fmt: skip


def _two(target: str) -> Function:
    return renamed(target, "x:x1 y:x2")


def _clip(t: Any, clip_value_min: Any, clip_value_max: Any) -> Expression:
    return Expression("clip", {"x": t, "x_min": clip_value_min, "x_max": clip_value_max})


def _squared_difference(x: Any, y: Any) -> Expression:
    return Expression("square", {"x": Expression("subtract", {"x1": x, "x2": y})})


def _add_n(inputs: Any) -> Expression:
    total = inputs[0]
    for item in inputs[1:]:
        total = Expression("add", {"x1": total, "x2": item})
    return total if isinstance(total, Expression) else Expression("copy", {"x": total})


FUNCTIONS = {
    **{name: _two(target) for name, target in _TWO.items()},
    **{name: renamed(target, "x") for name, target in _ONE.items()},
    "identity": renamed("copy", "input:x"),
    "zeros_like": renamed("zeros_like", "input:x", dtype=None, layout=None),
    "ones_like": renamed("ones_like", "input:x", dtype=None, layout=None),
    "math.equal": _two("equal"),
    "__operators__.eq": renamed("equal", "self:x1 other:x2"),
    "__operators__.ne": renamed("not_equal", "self:x1 other:x2"),
    "clip_by_value": Function("t clip_value_min clip_value_max", _clip),
    "math.squared_difference": Function("x y", _squared_difference),
    "math.add_n": Function("inputs", _add_n),
    "stop_gradient": renamed("stop_gradient", "input:variable"),
    "cast": renamed("cast", "x dtype"),
    "where": renamed("where", "condition x:x1 y:x2"),
    "compat.v1.where_v2": renamed("where", "condition x:x1 y:x2"),
}
