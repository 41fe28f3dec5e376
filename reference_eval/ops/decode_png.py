"""DecodePng: the pixels of a PNG image that is not interlaced.

Dtypes: string to uint8, uint16.
Accuracy: exact.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.errors import NotEvaluatedError
from reference_eval.registry import op
from reference_eval.sizes import check_shape

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}  # colour type -> samples of a pixel; 3 is a palette


@op("DecodePng")
def decode_png(contents: Array, *, channels: int = 0, dtype: np.dtype[Any]) -> Array:
    data = contents.item()
    if channels not in (0, 1, 3, 4):
        raise ValueError(f"channels must be 0, 1, 3, or 4, got {channels}")
    if not data.startswith(SIGNATURE):
        raise ValueError("Invalid PNG data")
    chunks = list(chunks_of(data))
    header = next((body for kind, body in chunks if kind == b"IHDR"), b"")
    if len(header) != 13:
        raise ValueError("Invalid PNG header")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if colour not in SAMPLES or bits not in (8, 16) or interlaced:
        reason = f"a PNG image of colour type {colour} with {bits} bits, interlaced {interlaced}"
        raise NotEvaluatedError(f"{reason}, is not evaluated")
    samples = SAMPLES[colour]
    check_shape([height, width, samples], bits // 8)
    packed = b"".join(body for kind, body in chunks if kind == b"IDAT")
    pixels = unfiltered(inflated(packed, height, width * samples * bits // 8), samples * bits // 8)
    image = pixels.view(">u2" if bits == 16 else np.uint8).reshape(height, width, samples)
    return in_channels(in_depth(image, bits, dtype), channels)


def chunks_of(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each chunk. Raises ValueError: one is cut or damaged."""
    position = len(SIGNATURE)
    while position < len(data):
        size, kind = struct.unpack_from(">I4s", data.ljust(position + 8, b"\0"), position)
        end = position + 8 + size
        if end + 4 > len(data):
            raise ValueError("Invalid PNG data: a chunk is cut")
        if zlib.crc32(data[position + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise ValueError("Invalid PNG data: the checksum of a chunk is wrong")
        yield kind, data[position + 8 : end]
        position = end + 4


def inflated(packed: bytes, height: int, row: int) -> Array:
    """Return the rows, each with its filter first. Raises ValueError: they have another size."""
    wanted = height * (row + 1)
    try:
        content = zlib.decompressobj().decompress(packed, wanted)
    except zlib.error as error:
        raise ValueError(f"Invalid PNG data: {error}") from error
    if len(content) != wanted:
        raise ValueError("Invalid PNG data: there are too few pixels")
    return np.frombuffer(content, np.uint8).reshape(height, row + 1)


def unfiltered(rows: Array, step: int) -> Array:
    """Return the bytes of the pixels. `step` is the distance of a byte to that on its left."""
    out = np.zeros([rows.shape[0] + 1, rows.shape[1] - 1 + step], np.uint8)
    for number, (kind, *filtered) in enumerate(rows.tolist(), 1):
        above, row = out[number - 1].tolist(), [0] * step
        for place, value in enumerate(filtered):
            left, up, corner = row[place], above[place + step], above[place]
            row.append((value + predicted(kind, left, up, corner)) & 0xFF)
        out[number] = row
    return np.ascontiguousarray(out[1:, step:])


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return what a filter adds: nothing, left, up, their mean, or the nearest to their sum."""
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda value: abs(guess - value))
    if kind > 4:
        raise ValueError(f"Invalid PNG data: there is no filter {kind}")
    return (0, left, up, (left + up) // 2)[kind]


def in_depth(image: Array, bits: int, dtype: np.dtype[Any]) -> Array:
    """Return samples of 8 or 16 bits: the upper byte, or the byte twice."""
    if bits == 16:
        return image.astype(np.uint16) if dtype.itemsize == 2 else (image >> 8).astype(np.uint8)
    return image if dtype.itemsize == 1 else image.astype(np.uint16) * np.uint16(257)


def in_channels(image: Array, channels: int) -> Array:
    """Return an image with this number of channels; 0 keeps those of the file."""
    there = image.shape[-1]
    if channels in (0, there):
        return image
    grey = there <= 2
    if not grey and channels == 1:
        raise NotEvaluatedError("a PNG image in colour is not evaluated in grey")
    opaque = np.full([*image.shape[:-1], 1], np.iinfo(image.dtype).max, image.dtype)
    alpha = image[..., -1:] if there in (2, 4) else opaque
    colour = image[..., :1] if grey else image[..., :3]
    if channels >= 3 and grey:
        colour = np.repeat(colour, 3, axis=-1)
    return np.concatenate([colour, alpha], axis=-1) if channels == 4 else colour
