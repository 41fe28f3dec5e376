"""Lgamma: the logarithm of the absolute value of the gamma function.

Dtypes: floats.
Accuracy: 4 ulp in float32 above 0, computed in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Lgamma")
def lgamma(x: Array) -> Array:
    flat = [log_gamma(value) for value in x.astype(np.float64).ravel().tolist()]
    return np.asarray(flat, np.float64).reshape(x.shape).astype(x.dtype)


def log_gamma(value: float) -> float:
    """Return infinity at the poles (0, -1, -2, ...) and for an overflow, as C does."""
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):
        return math.inf
