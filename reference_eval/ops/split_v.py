"""SplitV: parts of the given sizes along an axis; one size may be -1.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SplitV")
def split_v(value: Array, sizes: Array, axis: Array) -> list[Array]:
    lengths = sizes.tolist()
    if -1 in lengths:
        rest = value.shape[int(axis)] - (np.sum(sizes).item() + 1)
        lengths[lengths.index(-1)] = rest
    if np.sum(lengths).item() != value.shape[int(axis)]:
        raise ValueError(f"the sizes {lengths} do not add up to {value.shape[int(axis)]}")
    return list(np.split(value, np.cumsum(lengths)[:-1], int(axis)))
