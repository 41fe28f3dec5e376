"""Functions that move, join and cut tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations.expression import (
    Expression,
    Function,
    array_of,
    is_numbers,
    renamed,
)
from savedmodel_migration.keras_2_to_3.rules.operations.sizes import (
    Sizes,
    joined,
    sizes_of,
    target_of,
)


def _part(item: Any) -> Any:
    if isinstance(item, Mapping) and set(item) <= {"start", "stop", "step"}:
        ends = [item.get(name) for name in ("start", "stop", "step")]
        if not all(end is None or isinstance(end, int) for end in ends):
            raise Refused("a slice with ends that are computed")
        return slice(*ends)
    if item is None or item is ... or isinstance(item, (int, slice)):
        return item
    raise Refused("an index that is computed")


def _get_item(tensor: Any, slice_spec: Any) -> Expression | Sizes:
    many = isinstance(slice_spec, (list, tuple))
    if isinstance(tensor, Sizes):
        return tensor.item(_part(slice_spec[0] if many else slice_spec))
    key = tuple([_part(item) for item in (slice_spec if many else (slice_spec,))])
    return Expression("get_item", {"x": tensor, "key": key})


def _reshape(tensor: Any, shape: Any) -> Expression:
    return Expression("reshape", {"x": tensor, "newshape": target_of(tensor, shape)})


def _static(shape: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = Sizes(joined(shape).values).known()
    return found


def _shape(input: Any, out_type: Any = None) -> Sizes:
    return sizes_of(input)


def stacked(values: Any, axis: Any = 0) -> Expression | Sizes:
    """Return tensors as one, or sizes as a list of them."""
    if any(isinstance(item, Sizes) for item in values):
        return joined(values)
    return Expression("stack", {"x": _alike(values), "axis": axis or 0})


def concatenated(values: Any, axis: Any) -> Expression | Sizes:
    """Return tensors as one, or lists of sizes as one."""
    if any(isinstance(item, Sizes) for item in values):
        return joined(values)
    return Expression("concatenate", {"xs": _alike(values), "axis": axis})


def _alike(values: Any) -> list[Any]:
    """Return tensors, and arrays of their dtype for constants among them."""
    dtypes = [str(item.dtype) for item in values if hasattr(item, "dtype")]
    return [array_of(item, dtypes) if is_numbers(item) else item for item in values]


def _axis(axis: Any) -> Any:
    return (
        tuple(axis)
        if isinstance(axis, list) and len(axis) > 1
        else axis[0]
        if isinstance(axis, list) and axis
        else axis or None
    )


def _squeeze(input: Any, axis: Any = None) -> Expression:
    return Expression(
        "squeeze", {"x": input, "axis": axis if isinstance(axis, int) else _axis(axis)}
    )


def _split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> Expression:
    sizes = num_or_size_splits
    if isinstance(sizes, (list, tuple)):
        cuts, at = [], 0
        for size in _static(sizes)[:-1]:
            if size < 0:
                raise Refused("a split with a size that is computed")
            at += size
            cuts.append(at)
        sizes = tuple(cuts)
    return Expression("split", {"x": value, "indices_or_sections": sizes, "axis": axis or 0})


def _pad(
    tensor: Any, paddings: Any, mode: Any = "CONSTANT", constant_values: Any = 0
) -> Expression:
    found = {
        "x": tensor,
        "pad_width": tuple(_static(pair) for pair in paddings),
        "mode": str(mode).lower(),
    }
    return Expression(
        "pad",
        {**found, "constant_values": constant_values} if found["mode"] == "constant" else found,
    )


def _one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
) -> Expression:
    if on_value not in (None, 1, 1.0) or off_value not in (None, 0, 0.0):
        raise Refused("one_hot with values of its own")
    return Expression(
        "one_hot",
        {
            "x": indices,
            "num_classes": depth,
            "axis": -1 if axis is None else axis,
            "dtype": dtype or "float32",
        },
    )


def _gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0
) -> Expression:
    if batch_dims:
        raise Refused(f"gather with batch_dims={batch_dims}")
    return Expression("take", {"x": params, "indices": indices, "axis": axis or 0})


def _tile(input: Any, multiples: Any) -> Expression:
    return Expression("tile", {"x": input, "repeats": _static(multiples)})


def _unstack(value: Any, num: Any = None, axis: Any = 0) -> Expression:
    return Expression("unstack", {"x": value, "num": num, "axis": axis or 0})


def _sort(target: str) -> Function:
    def make(values: Any, axis: Any = -1, direction: Any = "ASCENDING") -> Expression:
        found = Expression(target, {"x": values, "axis": -1 if axis is None else axis})
        if direction in (None, "ASCENDING"):
            return found
        if target == "argsort":
            raise Refused("argsort in descending order, in which equal numbers have another order")
        return Expression("flip", {"x": found, "axis": -1 if axis is None else axis})

    return Function("values axis direction", make, stable=False)


def _slice(input_: Any, begin: Any, size: Any) -> Expression:
    starts, sizes = _static(begin), _static(size)
    key = tuple(
        [
            slice(start, None if length == -1 else start + length)
            for start, length in zip(starts, sizes)
        ]
    )
    return Expression("get_item", {"x": input_, "key": key})


def _sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = "bool") -> Expression:
    if not isinstance(maxlen, int):
        raise Refused("a mask as long as the longest sequence")
    column = Expression("expand_dims", {"x": lengths, "axis": -1})
    found = Expression(
        "less",
        {
            "x1": np.arange(maxlen, dtype="int32"),
            "x2": Expression("cast", {"x": column, "dtype": "int32"}),
        },
    )
    return found if dtype in (None, "bool") else Expression("cast", {"x": found, "dtype": dtype})


def _trace(x: Any) -> Expression:
    return Expression("trace", {"x": x, "axis1": -2, "axis2": -1})


def _diagonal(input: Any) -> Expression:
    return Expression("diagonal", {"x": input, "axis1": -2, "axis2": -1})


def _reverse(tensor: Any, axis: Any) -> Expression:
    return Expression(
        "flip", {"x": tensor, "axis": tuple(axis) if isinstance(axis, list) else axis}
    )


FUNCTIONS = {
    "__operators__.getitem": Function("tensor slice_spec", _get_item, var=None),
    "shape": Function("input out_type", _shape, name=None),
    "compat.v1.shape": Function("input out_type", _shape, optimize=True, name=None),
    "reshape": Function("tensor shape", _reshape),
    "concat": Function("values axis", concatenated),
    "stack": Function("values axis", stacked),
    "unstack": Function("value num axis", _unstack),
    "split": Function("value num_or_size_splits axis num", _split),
    "transpose": renamed("transpose", "a:x perm:axes", conjugate=False),
    "expand_dims": renamed("expand_dims", "input:x axis"),
    "compat.v1.expand_dims": renamed("expand_dims", "input:x axis", dim=None),
    "squeeze": Function("input axis", _squeeze),
    "compat.v1.squeeze": Function("input axis", _squeeze, squeeze_dims=None),
    "tile": Function("input multiples", _tile),
    "pad": Function("tensor paddings mode constant_values", _pad),
    "one_hot": Function("indices depth on_value off_value axis dtype", _one_hot),
    "gather": Function("*params indices validate_indices axis batch_dims", _gather),
    "sort": _sort("sort"),
    "argsort": _sort("argsort"),
    "slice": Function("input_ begin size", _slice),
    "sequence_mask": Function("lengths maxlen dtype", _sequence_mask),
    "linalg.diag_part": Function("input", _diagonal),
    "linalg.trace": Function("x", _trace),
    "ensure_shape": Function("x shape", lambda x, shape=None: Expression("copy", {"x": x})),
    "convert_to_tensor": renamed("copy", "*value:x", dtype=None, dtype_hint=None),
    "repeat": renamed("repeat", "input:x repeats axis"),
    "reverse": Function("tensor axis", _reverse),
    "broadcast_to": renamed("broadcast_to", "input:x shape"),
    "roll": renamed("roll", "input:x shift axis"),
}
