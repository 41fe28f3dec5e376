"""Prod: the product over axes, 1 for no elements.

Dtypes: numbers.
Accuracy: products in another order: about n / 2 ulp.
"""

from __future__ import annotations

from reference_eval.arrays import Array, axes_of
from reference_eval.registry import op


@op("Prod")
def prod(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    return value.prod(axis=axes_of(axes, value), keepdims=keep_dims, dtype=value.dtype)
