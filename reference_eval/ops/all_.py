"""All: whether all values over axes are true.

Dtypes: bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, axes_of
from reference_eval.registry import op


@op("All")
def all_(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    return np.all(value, axis=axes_of(axes, value), keepdims=keep_dims)
