"""Rectangular parts of a tensor: the pieces of partitioned variables.

Each part of a tensor has an entry of its own, whose key encodes the tensor's name and the part so
that keys sort like parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from reference_impl.format import limits
from reference_impl.format.errors import LimitError, ShapeError

# (start, length) for each dimension. A length of -1, with start 0, is the whole dimension; on disk
# it differs from the explicit length.
Slice = tuple[tuple[int, int], ...]
# (start, length) for each dimension, with every length known.
Box = tuple[tuple[int, int], ...]

FULL = (0, -1)


def slice_key(name: bytes, part: Slice) -> bytes:
    """Return the key of a part's entry in the index (SM-BUNDLE-16)."""
    out = [_ordered_number(0), _ordered_string(name), _ordered_number(len(part))]
    for start, length in part:
        out += (_ordered_signed(start), _ordered_signed(length))
    return b"".join(out)


def _ordered_number(value: int) -> bytes:
    """Encode a number as a byte count and the bytes: larger numbers sort higher."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(digits),)) + digits


def _ordered_string(value: bytes) -> bytes:
    """Encode a string. 0x00 and 0xff are followed by their complement, so the end mark sorts below
    all that can follow.
    """
    return (
        re.sub(rb"[\0\xff]", lambda match: match[0] + bytes((match[0][0] ^ 0xFF,)), value) + b"\0\1"
    )


def _ordered_signed(value: int) -> bytes:
    """Encode in two's complement, in as few bytes as possible.

    As many leading bits are inverted as there are bytes.
    """
    size = 1
    while not -(1 << (7 * size - 1)) <= value < 1 << (7 * size - 1):
        size += 1
    header = ((1 << size) - 1) << (7 * size)
    return ((value & ((1 << 8 * size) - 1)) ^ header).to_bytes(size, "big")


def to_box(part: Slice, shape: Sequence[int]) -> Box:
    """Return the part with every length known (SM-BUNDLE-18).

    Raises ShapeError if the part is not within this shape.
    """
    if len(part) != len(shape):
        raise ShapeError(f"a slice of {len(part)} dimensions of a tensor of {len(shape)}")
    box = []
    for (start, length), size in zip(part, shape):
        if (start, length) == FULL:
            box.append((0, size))
        elif start < 0 or length <= 0 or start + length > size:
            raise ShapeError(f"the slice {start}:{start}+{length} is outside a dimension of {size}")
        else:
            box.append((start, length))
    return tuple(box)


def check_cover(boxes: Sequence[Box], shape: Sequence[int]) -> None:
    """Check that boxes, each within `shape`, cover it completely and do not overlap: then they hold
    as many elements (SM-BUNDLE-17).

    Raises ShapeError: the boxes leave a gap or overlap; LimitError: the check would take too many
    comparisons.
    """
    missing = math.prod(shape) - sum(map(_size, boxes))
    if shape and boxes:
        _check_disjoint(boxes, len(shape))
    if missing > 0:
        raise ShapeError(f"the slices leave out {missing} elements")
    if missing < 0:
        raise ShapeError(f"the slices hold {-missing} elements too many")


def _size(box: Box) -> int:
    """Return how many elements a box holds."""
    return math.prod(length for _, length in box)


def _check_disjoint(boxes: Sequence[Box], rank: int) -> None:
    """Sweep along the dimension with the most cuts and compare each box with the boxes that reach
    its start.
    """
    axis = max(range(rank), key=lambda d: len({box[d][0] for box in boxes}))
    active: list[Box] = []
    comparisons = 0
    for box in sorted(boxes, key=lambda box: box[axis][0]):
        active = [other for other in active if sum(other[axis]) > box[axis][0]]
        comparisons += len(active)
        if comparisons > limits.SLICE_COMPARISONS:
            reason = f"{len(boxes)} slices need more than {limits.SLICE_COMPARISONS} comparisons"
            raise LimitError(reason, limit="SLICE_COMPARISONS")
        for other in active:
            if all(a < c + d and c < a + b for (a, b), (c, d) in zip(box, other)):
                raise ShapeError(f"the slices {box} and {other} overlap")
        active.append(box)
