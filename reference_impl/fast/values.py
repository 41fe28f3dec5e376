"""Read the values of many variables from a checkpoint, with few system calls and few threads' jobs.

`reference_impl.functions.tensors` reads one value after another out of the mapped file. Here small
values that are neighbours in the file are read together, and a job of a thread copies many large
values. The bytes are read from the file itself, which costs less than the page faults of a mapping.

If anything is wrong with a value, it is read again by the plain code, which reports the error.

The benchmarks "load: ResNet50 exported by Keras 3" and "load: transformer of 12 layers"
(docs/evidence/benchmarks.md) justify it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from reference_impl.errors import SavedModelError
from reference_impl.fast.checksum import crc32c_unlocked
from reference_impl.format.bundle.checksum import crc32c_of_array, masked
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import ALIGNMENT, BundleReader
from reference_impl.format.container.files import open_regular
from reference_impl.functions import tensors

_BLOCK = 1 << 20  # bytes of small values that are read together, and whose memory is freed together
_BATCH = 1 << 26  # bytes of small values that are read before they are assigned
_GAP = 1 << 12  # bytes between two values that are read with them
_JOB = 1 << 24  # bytes of large values that a thread copies in one job
_PIECE = 1 << 20  # bytes that are read and then verified while the processor still has them


class _Small(NamedTuple):
    """A small value: its position among the values to read, its place in a file, its dtype."""

    position: int
    file: str
    entry: Entry
    dtype: tf.DType

    @property
    def end(self) -> int:
        return self.entry.offset + self.entry.size


def read(
    reader: BundleReader, keys: Sequence[str], copies: tensors.Copies
) -> Iterator[tensors.Value]:
    """Yield values for variables on the CPU, like `tensors.read_value` for each key.

    Large values are complete after `copies.finish`, which raises the errors of `BundleReader.read`.

    Raises:
      Exception: of any kind, if something is wrong with a value. The plain code reports the error.
    """
    batch: list[tuple[str, Entry]] = []
    size = 0
    for key in keys:
        entry = reader.entry(key)
        batch.append((key, entry))
        size += 0 if tensors.is_large(entry) else entry.size
        if size >= _BATCH:
            yield from _read_batch(reader, batch, copies)
            batch, size = [], 0
    yield from _read_batch(reader, batch, copies)


def _read_batch(
    reader: BundleReader, batch: list[tuple[str, Entry]], copies: tensors.Copies
) -> list[tensors.Value]:
    jobs = _Jobs(copies)
    found: list[Any] = [None] * len(batch)
    small = []
    for position, (key, entry) in enumerate(batch):
        dtype = tf.dtypes.as_dtype(entry.dtype.number)
        if not entry.size or not tensors.is_copied(reader, key, dtype):
            found[position] = tensors.read_value(reader, key, copies)
        elif tensors.is_large(entry):
            found[position] = tensors.copied_once(reader, key, entry, dtype, jobs.add)
        else:
            small.append(_Small(position, reader.place(key), entry, dtype))
    jobs.start()
    small.sort(key=lambda one: (one.file, one.entry.offset))
    for file, values in itertools.groupby(small, key=lambda one: one.file):
        with open_regular(file) as stream:
            for block in _blocks(values):
                for one, array in zip(block, _read_block(stream, block)):
                    found[one.position] = array
    return found


def _blocks(values: Iterator[_Small]) -> Iterator[list[_Small]]:
    """Split the values of a file, in the order of their bytes, into blocks of neighbours.

    Values that share bytes are in different blocks, since a variable must not share memory with
    another.
    """
    block: list[_Small] = []
    for one in values:
        if block:
            gap = one.entry.offset - block[-1].end
            if not 0 <= gap <= _GAP or one.end - block[0].entry.offset > _BLOCK:
                yield block
                block = []
        block.append(one)
    if block:
        yield block


def _read_block(stream: BinaryIO, block: list[_Small]) -> list[npt.NDArray[Any]]:
    """Return the verified values of a block, which are parts of one array.

    A value is aligned in memory if it is aligned in the file. Then a tensor shares its memory;
    otherwise TensorFlow copies it.
    """
    start = block[0].entry.offset
    size = block[-1].end - start
    memory = np.empty(size + ALIGNMENT, np.uint8)
    shift = (start - memory.__array_interface__["data"][0]) % ALIGNMENT
    whole = memory[shift : shift + size]
    stream.seek(start)
    if stream.readinto(whole) != size:  # type: ignore[attr-defined]
        raise EOFError("the shard has shrunk")
    found = []
    for one in block:
        part = whole[one.entry.offset - start : one.end - start]
        if masked(crc32c_of_array(part)) != one.entry.crc32c:
            raise ValueError("the checksum of a value differs")
        found.append(part.view(one.dtype.as_numpy_dtype).reshape(one.entry.shape))
    return found


class _Large(NamedTuple):
    """A large value that is to be copied, with the memory for it and the tensor that owns it."""

    reader: BundleReader
    key: str
    target: npt.NDArray[Any]
    tensor: tf.Tensor


class _Jobs:
    """Jobs of threads. A job copies several large values in turn."""

    def __init__(self, copies: tensors.Copies):
        self._copies = copies
        self._values: list[_Large] = []
        self._size = 0

    def add(
        self, reader: BundleReader, key: str, target: npt.NDArray[Any], tensor: tf.Tensor
    ) -> None:
        """Add a value to the next job. Raises the error of an earlier copy."""
        self._values.append(_Large(reader, key, target, tensor))
        self._size += target.size
        if self._size >= _JOB:
            self.start()

    def start(self) -> None:
        """Start a job for the values that no job has yet."""
        if self._values:
            self._copies.run(functools.partial(_copy_all, self._values), self._size)
        self._values, self._size = [], 0


def _copy_all(values: list[_Large]) -> None:
    """Copy and verify values in turn.

    Raises the errors of `BundleReader.copy` for the first that is damaged.
    """
    for one in values:
        with contextlib.suppress(SavedModelError, OSError):
            if _is_copied(one):
                continue
        one.reader.copy(one.key, one.target)


def _is_copied(value: _Large) -> bool:
    """Copy a value. Return whether it is complete and its checksum is right."""
    entry, crc = value.reader.entry(value.key), 0
    with open_regular(value.reader.place(value.key)) as stream:
        stream.seek(entry.offset)
        for start in range(0, entry.size, _PIECE):
            part = value.target[start : start + _PIECE]
            if stream.readinto(part) != part.size:  # type: ignore[attr-defined]
                return False
            crc = crc32c_unlocked(part, crc)
    return masked(crc) == entry.crc32c
