"""TanhGrad, SigmoidGrad: gradients from the result y of the function.

Dtypes: floats, complex.
Accuracy: two or three roundings: 2 ulp.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("TanhGrad")
def tanh_grad(y: Array, dy: Array) -> Array:
    return dy * (np.ones((), y.dtype) - y * y)


@op("SigmoidGrad")
def sigmoid_grad(y: Array, dy: Array) -> Array:
    return dy * y * (np.ones((), y.dtype) - y)
