"""Write a tensor bundle as TensorFlow's own writer does: the same bytes for the same tensors in the
same order.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Optional, Union

from reference_impl.format import schema
from reference_impl.format.bundle import tensor_data
from reference_impl.format.bundle.entry import HEADER_KEY, VERSION, index_file, shard_file
from reference_impl.format.bundle.slices import FULL, Slice, slice_key, to_box
from reference_impl.format.bundle.table import TableWriter
from reference_impl.format.errors import (
    DtypeError,
    DuplicateKeyError,
    FileAccessError,
    SavedModelError,
    ShapeError,
)
from reference_impl.format.values import dtypes
from reference_impl.format.values.dtypes import DType
from reference_impl.format.values.shapes import shape_proto
from reference_impl.format.values.tensor_proto import object_array


class BundleWriter:
    """Writes one bundle, tensor by tensor; holds the index in memory, never the data.

    Data goes to temporary files beside the final ones. `finish` renames them and writes the index
    last. Without `finish` (an error inside `with`) no file is left behind. Tensors are stored in
    the order of the calls: TensorFlow saves an object-based checkpoint in the order of the object
    tree, with the object graph last.

    Args:
      prefix: path without `.index`; its folder is made when absent.
      num_shards: number of data files to begin with; `add_shard` makes more.

    Raises:
      FileAccessError: from any method, when the operating system refuses.
    """

    def __init__(self, prefix: Union[str, os.PathLike[str]], num_shards: int = 1) -> None:
        if num_shards < 1:
            raise ValueError(f"{num_shards} shards")
        self.prefix = os.fspath(prefix)
        self._entries: dict[bytes, Any] = {}
        self._streams: list[BinaryIO] = []
        self._offsets: list[int] = []
        self._suffix = f".{secrets.token_hex(4)}.tmp"
        self.num_shards = 0
        with self._aborting(self.prefix):
            Path(self.prefix).parent.mkdir(parents=True, exist_ok=True)
        for _ in range(num_shards):
            self.add_shard()

    def add_shard(self) -> int:
        """Start another data file; return its number."""
        with self._aborting(self.prefix):
            self._streams.append(Path(self._temporary(self.num_shards)).open("xb"))  # noqa: SIM115
        self._offsets.append(0)
        self.num_shards += 1
        return self.num_shards - 1

    def shard_bytes(self, shard: int) -> int:
        """Return how many bytes have been written to a data file."""
        return self._offsets[shard]

    def _shard_file(self, shard: int) -> str:
        return shard_file(self.prefix, shard, self.num_shards)

    def _temporary(self, shard: int) -> str:
        """Return the temporary path of a shard; the number of shards is not known yet."""
        return f"{self.prefix}.data-{shard:05}{self._suffix}"

    def add(
        self, key: str, value: object, dtype: Union[str, DType, None] = None, shard: int = 0
    ) -> None:
        """Append one tensor.

        Args:
          key: its name in the checkpoint.
          value: an array, or a value that NumPy converts to one; `bytes` or `str`, alone or nested
            in lists, are a string tensor.
          dtype: TensorFlow's name of the stored type; the array's own type by default. Needed for
            quantized types, variants, and types represented by integers of the same width. Nothing
            is converted.
          shard: number of the data file.

        Raises:
          DuplicateKeyError: the key has been written.
          DtypeError: the array cannot be stored, or not as `dtype`.
        """
        self._add(key.encode("utf-8"), value, dtype, shard)

    def add_slice(
        self,
        key: str,
        shape: Sequence[int],
        part: Slice,
        value: object,
        dtype: Union[str, DType, None] = None,
        shard: int = 0,
    ) -> None:
        """Append one slice of a partitioned tensor.

        The caller ensures that the slices cover the tensor.

        Args:
          key: name of the whole tensor.
          shape: shape of the whole tensor.
          part: (start, length) for each dimension; `slices.FULL` for a whole dimension.
          value, dtype, shard: as for `add`.

        Raises:
          ShapeError: the slice is not within the shape, its value has another shape, or an earlier
            slice had another full shape.
          DtypeError, DuplicateKeyError: as `add`; dtypes differ between the slices.
        """
        raw = key.encode("utf-8")
        part = tuple((int(start), int(length)) for start, length in part)
        if part and all(extent == FULL for extent in part):
            return self._add(raw, value, dtype, shard)
        array = _as_array(value)
        chosen = _dtype_of(array, dtype)
        try:
            lengths = tuple(length for _, length in to_box(part, shape))
            if array.shape != lengths:
                raise ShapeError(f"a value of shape {array.shape} for a slice of shape {lengths}")
            whole = self._entries.get(raw)
            if whole is None:
                whole = _entry(chosen, shape)
            elif not whole.slices:
                raise DuplicateKeyError("the key is written twice")
            elif [dim.size for dim in whole.shape.dim] != list(
                shape
            ) or whole.dtype != chosen.number:
                raise ShapeError("the slices of a tensor disagree about its shape or dtype")
            self._add(slice_key(raw, part), array, chosen, shard)
        except SavedModelError as error:
            error.node = key
            raise
        self._entries[raw] = whole
        extents = whole.slices.add()
        for start, length in part:
            extent = extents.extent.add()
            if (start, length) != FULL:
                extent.start, extent.length = start, length
        return None

    def _add(self, raw: bytes, value: object, dtype: Union[str, DType, None], shard: int) -> None:
        if raw in self._entries or raw == HEADER_KEY:
            raise DuplicateKeyError(
                "the key is written twice",
                file=self.prefix,
                node=raw.decode("utf-8", "backslashreplace"),
            )
        array = _as_array(value)
        chosen = _dtype_of(array, dtype)
        entry = _entry(chosen, array.shape)
        with self._aborting(self._shard_file(shard)):
            size, crc = tensor_data.encode(self._streams[shard], array, chosen)
        entry.shard_id, entry.offset, entry.size, entry.crc32c = (
            shard,
            self._offsets[shard],
            size,
            crc,
        )
        self._offsets[shard] += size
        self._entries[raw] = entry

    def finish(self) -> None:
        """Complete the bundle.

        An existing index is removed first, so that an old index never refers to new data.
        """
        index = Path(index_file(self.prefix))
        temporary = Path(f"{index}{self._suffix}")
        try:
            for stream in self._streams:
                stream.close()
            with temporary.open("xb") as stream:
                self._write_index(TableWriter(stream))
            index.unlink(missing_ok=True)
            for shard in range(self.num_shards):
                Path(self._temporary(shard)).replace(self._shard_file(shard))
            temporary.replace(index)
        except OSError as error:
            raise FileAccessError(f"cannot write: {error}", file=self.prefix) from None
        finally:
            self.abort()

    def _write_index(self, table: TableWriter) -> None:
        header = schema.BundleHeaderProto(
            num_shards=self.num_shards, version=schema.VersionDef(producer=VERSION)
        )
        header.endianness = int(tensor_data.NATIVE_ORDER == ">")
        table.add(HEADER_KEY, schema.serialize(header))
        for raw in sorted(self._entries):
            table.add(raw, schema.serialize(self._entries[raw]))
        table.finish()

    @contextmanager
    def _aborting(self, file: str) -> Iterator[None]:
        """Abort on an error of the operating system, after which the amount of written data is
        unknown.
        """
        try:
            yield
        except OSError as error:
            self.abort()
            raise FileAccessError(f"cannot write: {error}", file=file) from None

    def abort(self) -> None:
        """Remove the temporary files."""
        for stream in self._streams:
            with suppress(OSError):  # a full disk: the buffer cannot be flushed
                stream.close()
        for file in [
            *map(self._temporary, range(self.num_shards)),
            index_file(self.prefix) + self._suffix,
        ]:
            with suppress(OSError):
                Path(file).unlink()

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()


def _entry(dtype: DType, shape: Sequence[int]) -> Any:
    return schema.BundleEntryProto(dtype=dtype.number, shape=shape_proto(shape))


def _as_array(value: object) -> Any:
    """Return a value as an array.

    NumPy's own conversion would strip trailing zero bytes from `bytes`.
    """
    import numpy as np

    if isinstance(value, (bytes, str)):
        return object_array([value]).reshape(())
    if isinstance(value, (list, tuple)):
        items = np.array(value, dtype=object)
        if any(isinstance(item, (bytes, str)) for item in items.flat):
            return items
    return np.asarray(value)


def _dtype_of(array: Any, dtype: Union[str, DType, None]) -> DType:
    if dtype is None:
        return dtypes.from_numpy(array.dtype)
    chosen = dtype if isinstance(dtype, DType) else dtypes.by_name(dtype)
    if chosen.is_ref:
        raise DtypeError(f"{chosen.name} cannot be stored")
    return chosen
