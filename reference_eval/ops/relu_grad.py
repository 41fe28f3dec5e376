"""ReluGrad: the gradient where the value is above 0.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ReluGrad")
def relu_grad(gradients: Array, features: Array) -> Array:
    return np.where(features > 0, gradients, np.zeros((), gradients.dtype))
