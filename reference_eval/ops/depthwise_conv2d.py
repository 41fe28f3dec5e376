"""DepthwiseConv2dNative: each channel has its own kernels.

Dtypes: floats.
Accuracy: sums in another order, as Conv2D.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.windows import patches_of


@op("DepthwiseConv2dNative")
def depthwise_conv2d(
    value: Array,
    kernel: Array,
    *,
    strides: list[int],
    padding: bytes,
    explicit_paddings: Sequence[int] = (),
    data_format: bytes = b"NHWC",
    dilations: Sequence[int] = (),
) -> Array:
    if data_format != b"NHWC":
        raise ValueError("DepthwiseConv2dNative is evaluated in the format NHWC alone")
    patches = patches_of(
        value,
        kernel.shape[:2],
        tuple(strides[1:3]),
        tuple((dilations or (1, 1, 1, 1))[1:3]),
        padding,
        explicit_paddings[2:6],
    )
    out = np.einsum("nhwijc,ijcm->nhwcm", patches, kernel)
    return out.reshape([*out.shape[:3], -1])
