"""Reshape: the same elements in another shape; one size may be -1.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Reshape")
def reshape(tensor: Array, shape: Array) -> Array:
    return tensor.reshape(tuple(shape.tolist()))
