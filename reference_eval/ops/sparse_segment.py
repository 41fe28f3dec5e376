"""SparseSegmentSum, Mean, SqrtN: reduces chosen rows by segment.

Dtypes: floats.
Accuracy: sums in the order of the rows: about n / 8 ulp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("SparseSegmentSum")
def sparse_segment_sum(data: Array, indices: Array, segments: Array) -> Array:
    return reduced(data, indices, segments, lambda count: np.ones_like(count))


@op("SparseSegmentMean")
def sparse_segment_mean(data: Array, indices: Array, segments: Array) -> Array:
    return reduced(data, indices, segments, lambda count: count)


@op("SparseSegmentSqrtN")
def sparse_segment_sqrt_n(data: Array, indices: Array, segments: Array) -> Array:
    return reduced(data, indices, segments, np.sqrt)


def reduced(
    data: Array, indices: Array, segments: Array, divisor: Callable[[Array], Array]
) -> Array:
    """Return the sums of segments, divided by a function of their lengths."""
    check_indices(indices, len(data))
    count = int(segments[-1]) + 1 if len(segments) else 0
    out = np.zeros(check_shape([count, *data.shape[1:]], data.itemsize), data.dtype)
    np.add.at(out, segments, data[indices])
    lengths = np.bincount(segments, minlength=count).astype(data.dtype)
    divided_by = np.where(lengths == 0, 1, divisor(lengths)).astype(data.dtype)
    return out / divided_by.reshape([-1] + [1] * (data.ndim - 1))
