"""Merge: the input that has a value, and its number. The other ones are None: they are in a branch
that was not taken, or come from another iteration of a loop (`reference_eval.frames`).

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.registry import op


@op("Merge", "RefMerge")
def merge(values: list[Any]) -> tuple[Any, Any]:
    number = next(number for number, value in enumerate(values) if value is not None)
    return values[number], np.int32(number)
