"""MaxPool: the largest value of each window.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference_eval.arrays import Array, lowest
from reference_eval.registry import op
from reference_eval.windows import channels_as, channels_last, patches_of, spatial


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
    images, at = channels_last(value, data_format), spatial(data_format)
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
    return channels_as(out, data_format)
