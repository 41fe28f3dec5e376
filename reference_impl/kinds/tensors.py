"""Tensors of a checkpoint as eager tensors.

A large tensor is copied once, from the mapped file into memory of TensorFlow's allocator. `tf.convert_to_tensor` would copy it a
second time, in twice the time for a tensor of many megabytes: `benchmarks.weights` measures both.

RFC: RP-08
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import BundleReader

_LARGE = 1 << 20  # bytes
# What has a buffer that Python can address; bfloat16 is read as an integer of its width.
_ADDRESSABLE = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16")
)


def read_tensor(reader: BundleReader, key: str) -> tf.Tensor:
    """Return the value under a key, in the dtype in which it is stored. Raises what `BundleReader.read` raises."""
    entry = reader.entry(key)
    dtype = tf.dtypes.as_dtype(entry.dtype.number)
    if dtype == tf.string:
        return tf.constant(reader.read(key), tf.string)
    if not reader.is_plain(key):
        return tf.convert_to_tensor(reader.read(key).view(dtype.as_numpy_dtype))
    if entry.size < _LARGE or dtype.name not in _ADDRESSABLE:
        return copied_twice(reader, key, entry, dtype)
    if dtype == tf.bfloat16:
        return tf.bitcast(copied_once(reader, key, entry, tf.uint16), dtype)
    return copied_once(reader, key, entry, dtype)


def copied_twice(reader: BundleReader, key: str, entry: Entry, dtype: tf.DType) -> tf.Tensor:
    """Return a tensor that is read into an array first."""
    array = np.empty(entry.shape, dtype.as_numpy_dtype)
    target: Any = array.reshape(-1).view(np.uint8)
    reader.copy(key, memoryview(target))
    return tf.convert_to_tensor(array)


def copied_once(reader: BundleReader, key: str, entry: Entry, dtype: tf.DType) -> tf.Tensor:
    """Return a tensor that is read into its own memory. Nobody else has the tensor yet, so nobody sees it change."""
    with tf.device("CPU"):
        tensor = tf.raw_ops.Empty(shape=entry.shape, dtype=dtype)
    address = np.asarray(memoryview(tensor)).__array_interface__["data"][0]
    reader.copy(key, memoryview((ctypes.c_ubyte * entry.size).from_address(address)).cast("B"))
    return tensor
