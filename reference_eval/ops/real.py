"""Real: the real part of complex numbers.

Dtypes: complex.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Real")
def real(x: Array) -> Array:
    return np.real(x)
