"""QuantizeV2, Dequantize: floats as 8-bit numbers between two ends, and back.

Dtypes: uint8; mode MIN_COMBINED, other modes are refused.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op

LEVELS = np.float32(255)


@op("QuantizeV2")
def quantize_v2(
    value: Array,
    low: Array,
    high: Array,
    *,
    T: np.dtype[Any],
    mode: bytes,
    axis: int = -1,
    ensure_minimum_range: float = 0.01,
) -> tuple[Array, Array, Array]:
    check_supported(T, mode, axis)
    start = min(np.float32(0), np.float32(low))
    size = max(np.float32(1), abs(np.float32(low)), abs(np.float32(high)))
    end = max(np.float32(0), np.float32(high), start + size * np.float32(ensure_minimum_range))
    scale = LEVELS / (end - start)
    inside = np.maximum(np.minimum(value, end), start)
    steps = (inside - start) * scale + np.float32(0.5)
    return steps.astype(T), np.asarray(start, np.float32), np.asarray(end, np.float32)


@op("Dequantize")
def dequantize(
    value: Array, low: Array, high: Array, *, T: np.dtype[Any], mode: bytes, axis: int = -1
) -> Array:
    check_supported(T, mode, axis)
    scale = (high - low) / LEVELS
    return value.astype(np.float32) * scale + low


def check_supported(dtype: np.dtype[Any], mode: bytes, axis: int) -> None:
    """Raise ValueError for a dtype, mode or axis that is not evaluated."""
    if dtype != np.dtype(np.uint8) or mode != b"MIN_COMBINED" or axis != -1:
        raise ValueError(f"not evaluated for {dtype}, mode {mode.decode()}, axis {axis}")
