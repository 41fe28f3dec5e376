"""Conj: the complex conjugate.

Dtypes: complex.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Conj")
def conj(x: Array) -> Array:
    return np.conj(x)
