"""AvgPool: the mean of each window, without the padding.

Dtypes: floats.
Accuracy: sums in another order: about log2(n) ulp.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.windows import channels_as, channels_last, patches_of, spatial


@op("AvgPool")
def avg_pool(
    value: Array,
    *,
    ksize: list[int],
    strides: list[int],
    padding: bytes,
    data_format: bytes = b"NHWC",
) -> Array:
    images, at = channels_last(value, data_format), spatial(data_format)
    window, step = tuple(ksize[at]), tuple(strides[at])
    sums = patches_of(images, window, step, (1, 1), padding).sum(axis=(3, 4), dtype=value.dtype)
    ones = np.ones([1, *images.shape[1:3], 1], value.dtype)
    counts = patches_of(ones, window, step, (1, 1), padding).sum(axis=(3, 4), dtype=value.dtype)
    out = sums / counts
    return channels_as(out, data_format)
