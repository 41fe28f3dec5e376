"""Read and write elements of the TensorArrays of TF 1.x (core/kernels/tensor_array.h)."""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.sizes import check_shape
from reference_eval.state import TensorArray, size_of


def write(array: TensorArray, index: int, value: Array, call: Call) -> None:
    """Set an element; in an array of gradients add to it.

    Raises:
      IndexError: the array has no such element.
      TypeError: its dtype is another one.
      ValueError: it was written or read before, or its shape does not fit.
    """
    if array.grows and index >= len(array.elements):
        check_shape([index + 1], np.dtype(object).itemsize)
        array.elements += [None] * (index + 1 - len(array.elements))
    _check_index(array, index)
    if value.dtype != array.dtype:
        raise TypeError(f"the array has dtype {array.dtype}, and the value {value.dtype}")
    if index in array.cleared:
        raise ValueError(f"Could not write to TensorArray index {index} because it was read")
    before = array.elements[index]
    if before is None:
        if not _fits(value, array.shape):
            raise ValueError(f"the value of shape {list(value.shape)} is not one of {array.shape}")
        call.hold(value.nbytes)
        array.elements[index], array.shapes[index] = value, value.shape
        if array.is_uniform:
            array.shape = value.shape
    elif not array.adds:
        raise ValueError(f"Could not write to TensorArray index {index} twice")
    elif before.shape != value.shape:
        raise ValueError(f"gradients of shapes {list(before.shape)} and {list(value.shape)}")
    else:
        array.elements[index] = before + value


def read(array: TensorArray, index: int, call: Call) -> Array:
    """Return an element, or zeros of the known shape for one that was not written.

    Raises:
      IndexError: the array has no such element.
      ValueError: it was read before and removed, or it was not written and its shape is unknown.
    """
    _check_index(array, index)
    if index in array.cleared:
        raise ValueError(
            f"Could not read index {index} twice because it was cleared after a previous read"
        )
    value = array.elements[index]
    if value is None:
        shape = array.shapes.get(index, array.shape)
        if shape is None or -1 in shape:
            raise ValueError(f"index {index} was not written, and its shape is unknown")
        check_shape(shape, array.dtype.itemsize)
        text = array.dtype == np.dtype(object)
        value = np.full(shape, b"", object) if text else np.zeros(shape, array.dtype)
    if array.clears:
        call.hold(-size_of(array.elements[index]))
        array.elements[index] = None
        array.cleared.add(index)
    return value


def gradients_of(array: TensorArray, source: bytes, prepended: tuple[int, ...]) -> TensorArray:
    """Return the array of the gradients of an array for a source, made at the first call."""
    if source not in array.gradients:
        shape = None if array.shape is None else (*prepended, *array.shape)
        made = TensorArray(array.dtype, shape, [None] * len(array.elements), adds=True)
        made.shapes = {index: (*prepended, *known) for index, known in array.shapes.items()}
        made.is_uniform = array.is_uniform
        array.gradients[source] = made
        array.grows = False  # another size would not fit the gradients
    return array.gradients[source]


def _check_index(array: TensorArray, index: int) -> None:
    if not 0 <= index < len(array.elements):
        raise IndexError(f"the index {index} is not in [0, {len(array.elements)})")


def _fits(value: Array, shape: object) -> bool:
    if not isinstance(shape, tuple):
        return True
    return len(shape) == value.ndim and all(
        size in (-1, there) for size, there in zip(shape, value.shape)
    )
