"""ReluGrad: the gradient where the value is above 0; NaN stays NaN.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ReluGrad")
def relu_grad(gradients: Array, features: Array) -> Array:
    return gradients * (features > 0).astype(gradients.dtype)
