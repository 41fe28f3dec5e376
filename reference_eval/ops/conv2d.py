"""Conv2D: a convolution over height and width; explicit, SAME or VALID padding.

Dtypes: floats.
Accuracy: sums in another order: about n / 8 ulp of the largest term, n = terms of one output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.windows import channels_as, channels_last, patches_of, spatial


@op("Conv2D")
def conv2d(
    value: Array,
    kernel: Array,
    *,
    strides: list[int],
    padding: bytes,
    explicit_paddings: Sequence[int] = (),
    data_format: bytes = b"NHWC",
    dilations: Sequence[int] = (),
) -> Array:
    images, at = channels_last(value, data_format), spatial(data_format)
    patches = patches_of(
        images,
        kernel.shape[:2],
        tuple(strides[at]),
        tuple((dilations or (1, 1, 1, 1))[at]),
        padding,
        explicit_paddings[2 * at.start : 2 * at.stop],
    )
    groups = images.shape[-1] // kernel.shape[2]
    inputs = np.split(patches, groups, axis=-1)
    kernels = np.split(kernel, groups, axis=-1)
    parts = [
        np.tensordot(part, weights, axes=([3, 4, 5], [0, 1, 2]))
        for part, weights in zip(inputs, kernels)
    ]
    out = np.concatenate(parts, axis=-1)
    return channels_as(out, data_format)
