"""Const: the tensor of the node.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Const")
def const(*, value: Array) -> Array:
    return value
