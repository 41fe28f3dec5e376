"""Tensors of a checkpoint as eager tensors, copied once: from the mapped file into the memory of the tensor.

`tf.convert_to_tensor` would copy an array twice more, first to be safe from its owner, then to have it aligned.

RFC: RP-08
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl.format.bundle.reader import BundleReader

_ALIGNMENT = 64  # bytes: what TensorFlow's kernels rely on
_LARGE = 1 << 20  # bytes
# What NumPy and TensorFlow exchange by DLPack; bfloat16 travels as an integer of its width.
_EXCHANGED = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16")
)


def read_tensor(reader: BundleReader, key: str) -> tf.Tensor:
    """The value under a key, in the dtype in which it is stored. Raises what `BundleReader.read` raises."""
    entry = reader.entry(key)
    dtype = tf.dtypes.as_dtype(entry.dtype.number)
    if dtype == tf.string:
        return tf.constant(reader.read(key), tf.string)
    if dtype.name not in _EXCHANGED or not entry.size or not reader.is_plain(key):
        return tf.convert_to_tensor(reader.read(key).view(dtype.as_numpy_dtype))
    if dtype == tf.bfloat16:
        return tf.bitcast(_copy(reader, key, tf.uint16), dtype)
    return _copy(reader, key, dtype)


def _copy(reader: BundleReader, key: str, dtype: tf.DType) -> tf.Tensor:
    entry = reader.entry(key)
    if entry.size >= _LARGE:
        # From TensorFlow's allocator, which reuses memory; fresh pages of the system cost more than the copy.
        with tf.device("CPU"):
            tensor = tf.raw_ops.Empty(shape=entry.shape, dtype=dtype)
        address = np.asarray(memoryview(tensor)).__array_interface__["data"][0]
        reader.copy(key, memoryview((ctypes.c_ubyte * entry.size).from_address(address)).cast("B"))
        return tensor
    buffer = np.empty(entry.size + _ALIGNMENT, np.uint8)
    start = -buffer.__array_interface__["data"][0] % _ALIGNMENT
    array: Any = buffer[start : start + entry.size]
    reader.copy(key, memoryview(array))
    return tf.experimental.dlpack.from_dlpack(array.view(dtype.as_numpy_dtype).reshape(entry.shape).__dlpack__())
