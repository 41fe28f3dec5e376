"""Elements of tensor lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

import numpy as np

from reference_eval.arrays import Array
from reference_eval.sizes import check_shape
from reference_eval.state import TensorList

_Shape = Optional[tuple[int, ...]]


def list_shape(shape: Array) -> _Shape:
    """Return the shape that a tensor states: the scalar -1 means an unknown rank."""
    return None if shape.ndim == 0 else tuple(shape.tolist())


def list_element(values: TensorList, index: int, shape: _Shape) -> Array:
    """Return an element; zeros of the known shape for one that was not set.

    Raises ValueError if the shape of an element that was not set is unknown.
    """
    element = values.elements[index]
    if element is not None:
        return element
    for known in (values.shape, shape, _shape_of_others(values)):
        if known is not None and -1 not in known:
            empty = np.zeros(check_shape(known, values.dtype.itemsize), values.dtype)
            return np.full(known, b"", object) if values.dtype == np.dtype(object) else empty
    raise ValueError(
        f"Trying to read an uninitialized tensor: the shape of element {index} is not known"
    )


def stacked(values: TensorList, indices: Iterable[int], shape: _Shape) -> Array:
    """Return elements along a new first axis."""
    rows = [list_element(values, index, shape) for index in indices]
    return along_new_axis(rows, (shape, values.shape), values.dtype)


def along_new_axis(rows: Sequence[Array], shapes: Iterable[_Shape], dtype: np.dtype[Any]) -> Array:
    """Return arrays of one shape along a new first axis.

    Args:
      rows: the arrays.
      shapes: those that a row is known to have, for the result without rows.
      dtype: of the result without rows.

    Raises:
      EvaluationLimitError: the result would be too large.
      ValueError: there are no rows, and no shape is known wholly.
    """
    if rows:
        check_shape([len(rows), *rows[0].shape], dtype.itemsize)
        return np.stack(rows)
    for known in shapes:
        if known is not None and -1 not in known:
            return np.empty([0, *known], dtype)
    raise ValueError("no elements, of unknown shape, cannot be stacked")


def _shape_of_others(values: TensorList) -> _Shape:
    there = [element for element in values.elements if element is not None]
    return there[0].shape if there else None
