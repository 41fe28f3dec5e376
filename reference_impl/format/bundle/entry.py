"""The entry of one tensor in the index of a bundle, and the names of a bundle's files."""

from __future__ import annotations

import math
from typing import NamedTuple

from reference_impl.format import schema
from reference_impl.format.bundle.slices import Slice
from reference_impl.format.errors import DtypeError, ShapeError, under_rule
from reference_impl.format.values import dtypes
from reference_impl.format.values.dtypes import DType
from reference_impl.format.values.shapes import check_rank

HEADER_KEY = b""
VERSION = 1  # of the format, as TensorFlow counts
_MAX_BYTES = (1 << 63) - 1


def index_file(prefix: str) -> str:
    return f"{prefix}.index"


def shard_file(prefix: str, shard: int, num_shards: int) -> str:
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


class Entry(NamedTuple):
    """One tensor of a bundle."""

    dtype: DType
    shape: tuple[int, ...]  # of the whole tensor
    shard: int  # this and the next two: where the bytes are; meaningless for a partitioned tensor
    offset: int
    size: int
    crc32c: int  # masked, as stored
    slices: tuple[Slice, ...]  # the parts of a partitioned tensor, else empty

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def parse_entry(value: bytes, node: str) -> Entry:
    """Decode the value of the key `node`. Errors do not name the file; the reader adds it.

    Raises:
      MalformedError: the bytes are not a BundleEntryProto.
      DtypeError: the type does not exist or cannot be stored.
      ShapeError: the shape is unknown, negative, too large to count, or does not fit the size.
    """
    proto = schema.parse(schema.BundleEntryProto, value, node=node)
    with under_rule("SM-BUNDLE-9"):
        dtype = dtypes.by_number(proto.dtype)
    if dtype.is_ref:
        raise DtypeError(f"{dtype.name} cannot be stored", rule="SM-BUNDLE-9")
    if proto.shape.unknown_rank:
        raise ShapeError("the shape of a stored tensor is unknown", rule="SM-BUNDLE-8")
    shape = tuple([dim.size for dim in proto.shape.dim])
    slices = tuple([_slice(part) for part in proto.slices])
    entry = Entry(dtype, shape, proto.shard_id, proto.offset, proto.size, proto.crc32c, slices)
    _check_shape(entry)
    return entry


def _slice(part: schema.TensorSliceProto) -> Slice:
    return tuple(
        [
            (extent.start, extent.length if extent.HasField("length") else -1)
            for extent in part.extent
        ]
    )


def _check_shape(entry: Entry) -> None:
    """Refuse a shape that TensorFlow cannot count, or whose tensor does not fit the entry's
    bytes.
    """
    dtype, shape, elements = entry.dtype, entry.shape, entry.elements
    with under_rule("SM-BUNDLE-8"):
        check_rank(len(shape))
    if shape and min(shape) < 0:
        raise ShapeError(f"the shape {shape} has a negative dimension", rule="SM-BUNDLE-8")
    # The other dimensions of an empty tensor count as well: NumPy multiplies them.
    if (elements or math.prod(size or 1 for size in shape)) * (dtype.itemsize or 1) > _MAX_BYTES:
        reason = f"the bytes of the shape {shape} are more than TensorFlow can count"
        raise ShapeError(reason, rule="SM-BUNDLE-8")
    if entry.slices:
        return
    smallest = elements * (dtype.itemsize or 1)
    if dtype.name == "string":
        smallest += 4
    elif dtype.name == "variant":
        smallest *= 5
    elif dtype.itemsize is None:
        raise DtypeError(f"{dtype.name} cannot be stored", rule="SM-BUNDLE-9")
    if entry.size < smallest or (dtype.itemsize is not None and entry.size != smallest):
        reason = f"{entry.size} bytes do not hold {dtype.name} of shape {shape}"
        raise ShapeError(reason, rule="SM-BUNDLE-6")
