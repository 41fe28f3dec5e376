"""ResizeNearestNeighbor: images in another size, each pixel that of the nearest one.

Dtypes: numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("ResizeNearestNeighbor")
def resize_nearest_neighbor(
    images: Array, size: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    height, width = check_shape(size.tolist())
    check_shape([images.shape[0], height, width, images.shape[3]], images.itemsize)
    rows = nearest(images.shape[1], height, align_corners, half_pixel_centers)
    columns = nearest(images.shape[2], width, align_corners, half_pixel_centers)
    return images[:, rows][:, :, columns]


def nearest(there: int, wanted: int, align_corners: bool, half_pixel: bool) -> Array:
    """Return the old pixel of each new one, computed in float32 as the kernel does."""
    aligned = align_corners and wanted > 1
    scale = np.float32((there - 1) / (wanted - 1) if aligned else there / wanted)
    places = np.arange(wanted, dtype=np.float32)
    if half_pixel:
        places = places + np.float32(0.5)
    places = places * scale
    # Halves go away from 0.
    found = np.floor(places + np.float32(0.5)) if align_corners else np.floor(places)
    return np.clip(found.astype(np.int64), 0, there - 1)
