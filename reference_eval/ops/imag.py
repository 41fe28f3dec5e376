"""Imag: the imaginary part of complex numbers.

Dtypes: complex.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Imag")
def imag(x: Array) -> Array:
    return np.imag(x)
