"""Arrays of more dimensions than NumPy has (32, or 64 since 2.0): TensorFlow has 254."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np


class Deep:
    """The array operations of the stand-in, on a vector of the elements in row-major order."""

    def __init__(self, flat: np.ndarray[Any, Any], shape: tuple[int, ...]) -> None:
        if flat.size != math.prod(shape):
            raise ValueError(f"{flat.size} elements in the shape {shape}")
        self._flat, self.shape, self.ndim, self.size, self.dtype = (
            flat,
            shape,
            len(shape),
            flat.size,
            flat.dtype,
        )

    def ravel(self) -> np.ndarray[Any, Any]:
        return self._flat

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        """Return the vector: together with ``shape`` it is all that the C API needs."""
        return self._flat if dtype is None else self._flat.astype(dtype)

    def __iter__(self) -> Iterator[Any]:
        return (self[index, ...] for index in range(self.shape[0]))

    def __getitem__(self, place: tuple[int, Any]) -> Any:
        """Return ``array[index, ...]``."""
        width = math.prod(self.shape[1:])
        return shaped(self._flat[place[0] * width : (place[0] + 1) * width], self.shape[1:])


def shaped(flat: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Any:
    """Return a vector in another shape. Raises ValueError: it has another number of elements."""
    return flat.reshape(shape) if len(shape) <= _MOST else Deep(flat, shape)


def _most() -> int:
    try:
        np.zeros((1,) * 64)
    except ValueError:
        return 32
    return 64


_MOST = _most()
