"""DivNoNan: the quotient, 0 where the divisor is 0.

Dtypes: floats, complex.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("DivNoNan")
def div_no_nan(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros((), x.dtype), x / y)
