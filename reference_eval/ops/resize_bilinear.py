"""ResizeBilinear: images in another size, by the weights of the four nearest pixels.

Dtypes: real numbers to float32.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("ResizeBilinear")
def resize_bilinear(
    images: Array,
    size: Array,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    call: Call,
) -> Array:
    height, width = check_shape(size.tolist(), 4)
    check_shape([images.shape[0], height, width, images.shape[3]], 4)
    kind = call.output_dtypes[0]
    rows = between(images.shape[1], height, align_corners, half_pixel_centers, kind)
    columns = between(images.shape[2], width, align_corners, half_pixel_centers, kind)
    values = images.astype(kind)
    across = []
    for row in rows[:2]:
        left, right = (values[:, row][:, :, column] for column in columns[:2])
        across.append(left + (right - left) * columns[2][:, None])
    top, bottom = across
    return top + (bottom - top) * rows[2][:, None, None]


def between(
    there: int, wanted: int, align_corners: bool, half_pixel: bool, kind: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Return for each new pixel the old ones below and above it, and the weight of the latter."""
    aligned = align_corners and wanted > 1
    scale = (there - 1) / (wanted - 1) if aligned else there / wanted
    half = 0.5 if half_pixel else 0.0
    places = (np.arange(wanted) + kind.type(half)).astype(kind) * kind.type(scale)
    places = places - kind.type(half)
    below = np.floor(places).astype(np.int64)
    last = there - 1
    upper = np.clip(below + 1, 0, last)
    return np.clip(below, 0, last), upper, places - np.floor(places)
