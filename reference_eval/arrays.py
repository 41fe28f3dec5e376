"""Small tools on arrays that several ops share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def axes_of(axes: Array, value: Array) -> tuple[int, ...]:
    """Return the axes of a reduction without repetition. Raises ValueError for one out of range."""
    found = [int(axis) + value.ndim if axis < 0 else int(axis) for axis in axes.ravel()]
    if any(not 0 <= axis < value.ndim for axis in found):
        raise ValueError(f"Invalid reduction dimension in {axes.tolist()} for {value.ndim} axes")
    return tuple(dict.fromkeys(found))


def check_indices(indices: Array, count: int) -> None:
    """Raise IndexError unless every index is in [0, count)."""
    wrong = (indices < 0) | (indices >= count)
    if np.any(wrong):
        first = np.asarray(indices)[wrong].ravel()[0]
        raise IndexError(f"the index {first} is not in [0, {count})")


def broadcasts(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether two shapes broadcast."""
    pairs = zip(reversed(first), reversed(second))
    return all(a == b or 1 in (a, b) for a, b in pairs)


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the lowest value of a dtype: minus infinity for floats."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.asarray(-np.inf).astype(dtype)


def highest(dtype: np.dtype[Any]) -> Any:
    """Return the highest value of a dtype: infinity for floats."""
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.asarray(np.inf).astype(dtype)


def object_array(values: Sequence[Any], shape: Sequence[int]) -> Array:
    """Return bytes as an array of the dtype `object`."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def each(values: Array, change: Callable[[bytes], bytes]) -> Array:
    """Return an array of strings, each of them changed."""
    return object_array([change(text) for text in values.ravel().tolist()], values.shape)


def array_of(value: npt.ArrayLike, dtype: np.dtype[Any]) -> Array:
    """Return an input of a signature as an array; text becomes UTF-8 bytes."""
    if dtype != np.dtype(object):
        return np.asarray(value, dtype)
    given = np.asarray(value, object)
    flat = [item.encode() if isinstance(item, str) else item for item in given.ravel().tolist()]
    return object_array(flat, given.shape)
