"""BiasAddGrad: the sum over everything but the channels.

Dtypes: numbers.
Accuracy: sums in another order, as Sum.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BiasAddGrad")
def bias_add_grad(gradient: Array, *, data_format: bytes = b"NHWC") -> Array:
    channels = 1 if data_format == b"NCHW" else gradient.ndim - 1
    axes = tuple([axis for axis in range(gradient.ndim) if axis != channels])
    return np.asarray(gradient.sum(axis=axes, dtype=gradient.dtype))
