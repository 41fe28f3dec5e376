"""EncodePng: a PNG image of pixels.

Dtypes: uint8, uint16 to string.
Accuracy: the pixels are exact; the bytes differ, since filters and compression are a choice.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from reference_eval.arrays import Array, object_array
from reference_eval.ops.decode_png import SAMPLES, SIGNATURE
from reference_eval.registry import op

DEFAULT, LARGEST = -1, 9


@op("EncodePng")
def encode_png(image: Array, *, compression: int = DEFAULT) -> Array:
    if not DEFAULT <= compression <= LARGEST:
        raise ValueError(f"compression should be in [-1, 9], got {compression}")
    if image.ndim < 3 or not 1 <= image.shape[-1] <= 4 or not image.size:
        raise ValueError(f"image must be at least 3-D with 1 to 4 channels: {list(image.shape)}")
    flat = image.reshape(-1, *image.shape[-3:])
    return object_array([encoded(one, compression) for one in flat], image.shape[:-3])


def encoded(image: Array, compression: int) -> bytes:
    """Return one image; its rows have no filter."""
    height, width, samples = image.shape
    colour = next(kind for kind, count in SAMPLES.items() if count == samples)
    stored = image.astype(image.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    rows = np.column_stack([np.zeros(height, np.uint8), stored]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8 * image.itemsize, colour, 0, 0, 0)
    packed = zlib.compress(rows, compression)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    """Return a chunk: its length, kind, content and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
