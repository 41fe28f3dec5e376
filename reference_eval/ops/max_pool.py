"""MaxPool: the largest value of each window.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_eval.arrays import Array, lowest
from reference_eval.registry import op
from reference_eval.windows import patches_of


@op("MaxPool")
def max_pool(
    value: Array,
    *,
    ksize: list[int],
    strides: list[int],
    padding: bytes,
    explicit_paddings: Sequence[int] = (),
    data_format: bytes = b"NHWC",
) -> Array:
    nchw = data_format == b"NCHW"
    images = np.moveaxis(value, 1, -1) if nchw else value
    at = slice(2, 4) if nchw else slice(1, 3)
    patches = patches_of(
        images,
        tuple(ksize[at]),
        tuple(strides[at]),
        (1, 1),
        padding,
        explicit_paddings[2 * at.start : 2 * at.stop],
        lowest(value.dtype),
    )
    out = patches.max(axis=(3, 4))
    return np.moveaxis(out, -1, 1) if nchw else out
