"""UnsortedSegmentSum, Max, Min, Prod: reduces rows by the number of their segment.

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
