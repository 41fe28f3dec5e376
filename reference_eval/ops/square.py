"""Square: x times x.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Square")
def square(x: Array) -> Array:
    return x * x
