"""Reductions over axes."""

from __future__ import annotations

from typing import Any

from compat_matrix.keras_migration.rules.operations.expression import Expression, Function, renamed

_NAMES = {
    "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod",
    "reduce_any": "any",
    "reduce_all": "all", "reduce_std": "std", "reduce_variance": "var", "reduce_logsumexp": "logsumexp",
}  # fmt: skip


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


def _norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = False) -> Expression:
    order = None if ord == "euclidean" else ord
    axes = tuple(axis) if isinstance(axis, list) else axis
    return Expression("norm", {"x": tensor, "ord": order, "axis": axes, "keepdims": bool(keepdims)})


FUNCTIONS = {
    **{f"math.{name}": _reduction(target) for name, target in _NAMES.items()},
    "math.argmax": _arg("argmax"),
    "math.argmin": _arg("argmin"),
    "norm": Function("tensor ord axis keepdims", _norm),
    "linalg.norm": Function("tensor ord axis keepdims", _norm),
    "math.cumsum": renamed("cumsum", "x axis", exclusive=False, reverse=False),
}
