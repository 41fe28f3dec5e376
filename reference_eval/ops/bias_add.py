"""BiasAdd, BiasAddV1: adds a vector to the channels, which are last or second (NCHW).

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BiasAdd", "BiasAddV1")
def bias_add(value: Array, bias: Array, *, data_format: bytes = b"NHWC") -> Array:
    if data_format == b"NCHW":
        bias = bias.reshape([-1] + [1] * (value.ndim - 2))
    return value + bias
