"""UnsortedSegmentSum, SegmentSum: adds rows by the number of their segment.

Dtypes: numbers.
Accuracy: sums in the order of the rows.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("UnsortedSegmentSum")
def unsorted_segment_sum(data: Array, ids: Array, count: Array) -> Array:
    shape = check_shape([int(count), *data.shape[ids.ndim :]], data.itemsize)
    out = np.zeros(shape, data.dtype)
    kept = ids >= 0
    check_indices(ids[kept], int(count))
    np.add.at(out, ids[kept], data[kept])
    return out


@op("SegmentSum")
def segment_sum(data: Array, ids: Array) -> Array:
    if np.any(np.diff(ids) < 0):
        raise ValueError("segment ids are not increasing")
    check_indices(ids, 2**62)
    return unsorted_segment_sum(data, ids, np.asarray(ids[-1] + 1 if len(ids) else 0))
