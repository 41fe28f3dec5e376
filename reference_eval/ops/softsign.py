"""Softsign: x / (1 + abs(x)).

Dtypes: floats.
Accuracy: exact: two roundings.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Softsign")
def softsign(x: Array) -> Array:
    return x / (np.ones((), x.dtype) + np.abs(x))
