"""QuantizedMatMul: the product of two matrices of 8-bit numbers, and the ends of its range.

Dtypes: uint8 to int32.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape

INT32 = np.iinfo(np.int32)


@op("QuantizedMatMul")
def quantized_mat_mul(
    a: Array,
    b: Array,
    low_a: Array,
    high_a: Array,
    low_b: Array,
    high_b: Array,
    *,
    Toutput: np.dtype[Any],
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> tuple[Array, Array, Array]:
    if (a.dtype.name, b.dtype.name, Toutput.name) != ("uint8", "uint8", "int32"):
        raise ValueError(f"not evaluated for {a.dtype}, {b.dtype} to {Toutput}")
    left = (a.T if transpose_a else a).astype(np.int32) - zero_of(low_a, high_a)
    right = (b.T if transpose_b else b).astype(np.int32) - zero_of(low_b, high_b)
    check_shape([left.shape[0], right.shape[1]], 4)
    unit = unit_of(low_a, high_a) * unit_of(low_b, high_b)
    return left @ right, unit * np.float32(INT32.min), unit * np.float32(INT32.max)


def zero_of(low: Array, high: Array) -> np.int32:
    """Return the number that stands for 0.0, which may be outside of 0 to 255."""
    if low == high:
        return np.int32(0)
    steps = 256 / (float(high - low) * (256 / 255))
    return np.int32(-np.floor(abs(float(low) * steps) + 0.5) * np.sign(low))


def unit_of(low: Array, high: Array) -> np.float32:
    """Return the difference of two neighbouring numbers."""
    return np.float32((high - low) / np.float32(255))
