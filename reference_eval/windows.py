"""The windows of convolutions and pools over images (batch, height, width, channels)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.sizes import check_shape


def channels_last(images: Array, data_format: bytes) -> Array:
    """Return images with the channels as the last axis."""
    return np.moveaxis(images, 1, -1) if data_format == b"NCHW" else images


def channels_as(images: Array, data_format: bytes) -> Array:
    """Return images whose last axis is the channels in a data format: undo `channels_last`."""
    return np.moveaxis(images, -1, 1) if data_format == b"NCHW" else images


def spatial(data_format: bytes) -> slice:
    """Return the places of height and width in an attribute with one number for each axis."""
    return slice(2, 4) if data_format == b"NCHW" else slice(1, 3)


def patches_of(
    images: Array,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: bytes,
    explicit: Sequence[int] = (),
    filler: Any = 0,
) -> Array:
    """Return an array (batch, out height, out width, window height, window width, channels).

    Args:
      padding: ``b"SAME"`` divides the padding in two, the larger part after the image; ``b"VALID"``
        has none; ``b"EXPLICIT"`` takes it from `explicit`: top, bottom, left, right.
    """
    reach = [(size - 1) * step + 1 for size, step in zip(window, dilations)]
    around = [(0, 0), (0, 0), (0, 0), (0, 0)]
    for axis in (0, 1):
        there = images.shape[axis + 1]
        if padding == b"SAME":
            outputs = -(-there // strides[axis])
            missing = (outputs - 1) * strides[axis] + reach[axis] - there
            missing = max(0, missing)
            around[axis + 1] = (missing // 2, missing - missing // 2)
        elif padding == b"EXPLICIT":
            around[axis + 1] = (explicit[2 * axis], explicit[2 * axis + 1])
    _check(images, around, reach, strides, window)
    padded = np.pad(images, around, constant_values=filler)
    views = np.lib.stride_tricks.sliding_window_view(padded, tuple(reach), axis=(1, 2))
    chosen = views[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    return np.moveaxis(chosen, 3, -1)


def _check(
    images: Array,
    around: Sequence[tuple[int, int]],
    reach: Sequence[int],
    strides: Sequence[int],
    window: Sequence[int],
) -> None:
    """Raise an error if the windows do not fit, or they or the padded images are too large."""
    padded = [size + before + after for size, (before, after) in zip(images.shape, around)]
    check_shape(padded, images.itemsize)
    outputs = [(padded[axis + 1] - reach[axis]) // strides[axis] + 1 for axis in (0, 1)]
    if min(outputs) < 0:
        raise ValueError(f"a window of {list(reach)} is larger than the padded image")
    check_shape([padded[0], *outputs, *window, padded[-1]], images.itemsize)
