"""SparseSegmentSum, Mean, SqrtN, with a number of segments or without: reduces chosen rows.

Dtypes: floats.
Accuracy: sums in the order of the rows: about n / 8 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def sparse_segment_sum(
    data: Array, indices: Array, segments: Array, count: Optional[Array] = None
) -> Array:
    return reduced(data, indices, segments, count, np.ones_like)


@op("SparseSegmentMean", "SparseSegmentMeanWithNumSegments")
def sparse_segment_mean(
    data: Array, indices: Array, segments: Array, count: Optional[Array] = None
) -> Array:
    return reduced(data, indices, segments, count, np.positive)


@op("SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments")
def sparse_segment_sqrt_n(
    data: Array, indices: Array, segments: Array, count: Optional[Array] = None
) -> Array:
    return reduced(data, indices, segments, count, np.sqrt)


def reduced(
    data: Array,
    indices: Array,
    segments: Array,
    count: Optional[Array],
    divisor: Callable[[Array], Array],
) -> Array:
    """Return the sums of segments, divided by a function of their lengths.

    Without `count` the last segment id decides the number of segments.
    """
    if np.any(np.diff(segments) < 0):
        raise ValueError("segment ids are not increasing")
    check_indices(indices, len(data))
    last = int(segments[-1]) + 1 if len(segments) else 0
    rows = last if count is None else int(count)
    check_indices(segments, rows)
    out = np.zeros(check_shape([rows, *data.shape[1:]], data.itemsize), data.dtype)
    np.add.at(out, segments, data[indices])
    lengths = np.bincount(segments, minlength=rows).astype(data.dtype)
    divided_by = np.where(lengths == 0, 1, divisor(lengths)).astype(data.dtype)
    return out / divided_by.reshape([-1] + [1] * (data.ndim - 1))
