"""Unique, UniqueWithCounts: distinct values in the order of their first place, and their places.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Unique")
def unique(x: Array, *, out_idx: np.dtype[Any]) -> tuple[Array, Array]:
    places: dict[Any, int] = {}
    found = [places.setdefault(value, len(places)) for value in x.tolist()]
    first = np.empty(len(places), x.dtype)
    first[:] = list(places)
    return first, np.asarray(found, out_idx)


@op("UniqueWithCounts")
def unique_with_counts(x: Array, *, out_idx: np.dtype[Any]) -> tuple[Array, Array, Array]:
    first, places = unique(x, out_idx=out_idx)
    return first, places, np.bincount(places, minlength=len(first)).astype(out_idx)
