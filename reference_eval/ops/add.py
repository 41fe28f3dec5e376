"""Add, AddV2: the sum with broadcasting. Add also joins strings.

Dtypes: numbers, strings (Add).
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Add", "AddV2")
def add(x: Array, y: Array) -> Array:
    return x + y
