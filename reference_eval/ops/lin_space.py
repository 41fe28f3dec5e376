"""LinSpace: numbers at equal distances; the last is exactly `stop`.

Dtypes: floats.
Accuracy: 1 ulp of the larger end.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("LinSpace")
def lin_space(start: Array, stop: Array, count: Array) -> Array:
    if count < 1:
        raise ValueError(f"Requires num > 0: {int(count)}")
    numbers = np.arange(check_shape([int(count)], start.itemsize)[0], dtype=start.dtype)
    if count == 1:
        return start + numbers
    step = (stop - start) / start.dtype.type(count - 1)
    out = start + step * numbers
    out[-1] = stop
    return out
