"""Read tensors of a checkpoint as eager tensors.

A large tensor is copied once, from the mapped file into memory of TensorFlow's allocator.
`tf.convert_to_tensor` would copy it a second time, which takes twice the time for a tensor of many
megabytes: `benchmarks.weights` measures both. The values of variables are not read before the load
is done, so they are copied by threads (`Copies`) or not at all (``LoadOptions(weights="mapped")``).

RFC: RP-08
"""

from __future__ import annotations

import ctypes
import functools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.load_options import LoadOptions

_LARGE = 1 << 20  # bytes
_THREADS = 2
_AHEAD = (
    1 << 28
    # bytes that may wait to be copied, so that a damaged checkpoint is noticed before all memory is
    # allocated
)
_MAPPED = 1 << 16  # bytes; for a smaller tensor a copy costs no more than a view
# Substitutes of the same width for dtypes that have no empty tensors in TensorFlow (most dtypes in
# 2.12) or no buffers in Python (bfloat16).
_CARRIERS = {1: tf.uint8, 2: tf.float16, 4: tf.int32, 8: tf.int64}
_EMPTY = frozenset((tf.uint8, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64))
_ADDRESSABLE = frozenset(
    (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
    )
)


class Values:
    """The values of a checkpoint, which is opened when it is needed and must stay open until
    `close`.

    The options ``weights`` and ``verify_mapped`` choose how large values are read.
    """

    def __init__(self, open_reader: Callable[[], BundleReader], options: LoadOptions):
        self._open_reader, self._options = open_reader, options
        self._copies = Copies()

    @functools.cached_property
    def _reader(self) -> BundleReader:
        return self._open_reader()

    def read(self, key: str) -> tf.Tensor:
        """Return the value of a key. Raises the errors of `BundleReader.read`."""
        found = (
            mapped_tensor(self._reader, key, self._options.verify_mapped)
            if self._options.weights == "mapped"
            else None
        )
        return read_tensor(self._reader, key) if found is None else found

    @functools.cached_property
    def shares_memory(self) -> bool:
        """Whether a variable gets the memory into which its value is read."""
        return self._options.weights == "copied" and api.is_only_device()

    def assign(self, variable: tf.Variable, key: str) -> None:
        """Assign a value to a plain eager variable; the value is complete after `finish`.

        Raises the errors of `read`.
        """
        if self.shares_memory:
            value = read_value(self._reader, key, self._copies)
        else:
            value = self.read(key)
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)

    def finish(self) -> None:
        """Complete the assigned values. Raises the errors of `read`."""
        self._copies.finish()

    def drop(self) -> None:
        """Forget the values that were assigned since the last `finish`, with their errors."""
        self._copies.drop()

    def close(self) -> None:
        self._copies.close()


class Copies:
    """Copies of large values, made by threads while a load continues.

    Their tensors may be passed on to code that does not read them before `finish`. Copying releases
    the GIL, the checksum does not: if two threads alternate between both, the slower step decides
    the time. The benchmark "load: 1 GiB of weights" (docs/evidence/benchmarks.md) takes a third
    longer without them.
    """

    def __init__(self) -> None:
        self._pool: Optional[ThreadPoolExecutor] = None
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0

    def add(self, reader: BundleReader, key: str, target: Any, tensor: Any) -> None:
        """Copy a plain tensor of a bundle into memory that `tensor` owns.

        Raises the error of an earlier copy.
        """
        self._pool = self._pool or ThreadPoolExecutor(_THREADS, "reference_impl_copies")
        # The tensor is passed along to keep its memory alive.
        self._pending.append((self._pool.submit(_copy, reader, key, target, tensor), len(target)))
        self._bytes += len(target)
        self._finish(_AHEAD)

    def drop(self) -> None:
        """Forget all copies: cancel those that have not started, and wait for the others."""
        self.close()
        self._pending.clear()
        self._bytes = 0

    def finish(self) -> None:
        """Wait until everything is copied.

        Raises the error of the first copy that failed; see `BundleReader.copy`.
        """
        self._finish(0)

    def _finish(self, left: int) -> None:
        while self._bytes > left:
            copy, size = self._pending.popleft()
            self._bytes -= size
            copy.result()

    def close(self) -> None:
        """Drop the copies that have not started, and wait for the others."""
        if self._pool is not None:
            for copy, _ in self._pending:
                copy.cancel()
            self._pool.shutdown()
            self._pool = None


def read_tensor(reader: BundleReader, key: str) -> tf.Tensor:
    """Return the value of a key, in its stored dtype. Raises the errors of `BundleReader.read`."""
    entry = reader.entry(key)
    dtype = tf.dtypes.as_dtype(entry.dtype.number)
    if dtype == tf.string:
        return tf.constant(reader.read(key), tf.string)
    if not reader.is_plain(key):
        return tf.convert_to_tensor(reader.read(key).view(dtype.as_numpy_dtype))
    if entry.size < _LARGE or dtype.name not in _ADDRESSABLE:
        return copied_twice(reader, key, entry, dtype)
    return copied_once(reader, key, entry, dtype)


def read_value(
    reader: BundleReader, key: str, copies: Copies
) -> Union[tf.Tensor, npt.NDArray[Any]]:
    """Return a value for a variable on the CPU.

    A large value is a tensor that `copies` is still filling.

    Raises what `BundleReader.read` raises.
    """
    entry = reader.entry(key)
    dtype = tf.dtypes.as_dtype(entry.dtype.number)
    if not reader.is_plain(key) or dtype.name not in _ADDRESSABLE:
        return read_tensor(reader, key)
    return (
        array(reader, key, entry, dtype)
        if entry.size < _LARGE
        else copied_once(reader, key, entry, dtype, copies.add)
    )


def mapped_tensor(reader: BundleReader, key: str, verify: bool) -> Optional[tf.Tensor]:
    """Return a tensor whose memory is a private mapping of the file, or None if this is impossible
    and the value must be copied.

    Through the export by DLPack, the tensor holds the mapping for exactly as long as it lives.
    Raises the errors of `BundleReader.read`.
    """
    entry = reader.entry(key)
    dtype = tf.dtypes.as_dtype(entry.dtype.number)
    if entry.size < _MAPPED or not reader.is_plain(key) or dtype.name not in _ADDRESSABLE:
        return None
    found = reader.private_view(key)
    if found is None:
        return None
    if verify:
        reader.verify(key)
    carrier = np.dtype(np.uint16) if dtype == tf.bfloat16 else np.dtype(dtype.as_numpy_dtype)
    tensor = tf.experimental.dlpack.from_dlpack(
        found.view(carrier).reshape(entry.shape).__dlpack__()
    )
    return tf.bitcast(tensor, dtype) if dtype == tf.bfloat16 else tensor


def array(reader: BundleReader, key: str, entry: Entry, dtype: tf.DType) -> npt.NDArray[Any]:
    """Return a plain tensor as an array of its own."""
    made: npt.NDArray[Any] = np.empty(entry.shape, dtype.as_numpy_dtype)
    reader.copy(key, made.reshape(-1).view(np.uint8))
    return made


def copied_twice(reader: BundleReader, key: str, entry: Entry, dtype: tf.DType) -> tf.Tensor:
    """Return a tensor that is read into an array first."""
    return tf.convert_to_tensor(array(reader, key, entry, dtype))


def _copy(reader: BundleReader, key: str, target: npt.NDArray[Any], _tensor: tf.Tensor) -> None:
    reader.copy(key, target)


def copied_once(
    reader: BundleReader, key: str, entry: Entry, dtype: tf.DType, copy: Callable[..., None] = _copy
) -> tf.Tensor:
    """Return a tensor whose value is read directly into its memory.

    No other code has the tensor yet, so the change is invisible.

    `copy` is called with the reader, the key, the memory and the tensor that owns it.
    """
    with tf.device("CPU"):
        tensor = tf.raw_ops.Empty(
            shape=tf.constant(entry.shape, tf.int32),  # a tuple takes twice the time
            dtype=dtype if dtype in _EMPTY else _CARRIERS[dtype.size],
        )
    address = np.asarray(memoryview(tensor)).__array_interface__["data"][0]
    target = np.frombuffer(
        memoryview((ctypes.c_ubyte * entry.size).from_address(address)), np.uint8
    )
    copy(reader, key, target, tensor)
    return tensor if dtype in _EMPTY else tf.bitcast(tensor, dtype)  # which shares the memory
