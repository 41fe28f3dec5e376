"""StringStrip: without white space at the ends.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, each
from reference_eval.registry import op


@op("StringStrip")
def string_strip(values: Array) -> Array:
    return each(values, bytes.strip)
