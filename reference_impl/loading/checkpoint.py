"""The values of a load: which checkpoint key belongs to which object, and arrays as tensors (RP-08, V1-18, OPT-02).

A SavedObjectGraph and the checkpoint's own TrackableObjectGraph describe one tree with two numberings. Walking both from the
root by the names of children, and from variables to their slots, pairs the nodes without making a single object; so variables
can be created with their values, and nothing needs to be restored afterwards.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from reference_impl.errors import MissingValueError
from reference_impl.format.bundle import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.errors import MissingFileError, MissingKeyError, SavedModelError, ShapeError
from reference_impl.format.layout import Layout

VALUE = "VARIABLE_VALUE"
_ALIGNMENT = 64  # bytes: TensorFlow adopts a NumPy buffer that is aligned so, and copies any other


class Checkpoint:
    """The checkpoint of one SavedModel.

    Args:
      directory: the SavedModel.
      graph: its SavedObjectGraph.
    """

    def __init__(self, directory: Layout, graph: Any):
        self.prefix = os.fspath(directory.checkpoint_prefix)
        self._directory = directory
        self._graph = graph

    @functools.cached_property
    def _reader(self) -> BundleReader:
        return BundleReader(self.prefix)

    @functools.cached_property
    def _nodes(self) -> Mapping[int, Any]:
        """Number in the SavedObjectGraph -> node of the TrackableObjectGraph."""
        saved, stored = self._graph.nodes, self._reader.object_graph().nodes
        pairs = {0: 0}
        stack = [(0, 0)]
        while stack:
            here, there = stack.pop()
            children = {child.local_name: child.node_id for child in stored[there].children}
            for child in saved[here].children:
                twin = children.get(child.local_name)
                if twin is not None and child.node_id not in pairs and 0 <= twin < len(stored):
                    pairs[child.node_id] = twin
                    stack.append((child.node_id, twin))
        for here, there in list(pairs.items()):
            slots = {
                (slot.slot_name, slot.original_variable_node_id): slot.slot_variable_node_id
                for slot in stored[there].slot_variables
            }
            for slot in saved[here].slot_variables:
                twin = slots.get((slot.slot_name, pairs.get(slot.original_variable_node_id)))
                if twin is not None and 0 <= twin < len(stored):
                    pairs.setdefault(slot.slot_variable_node_id, twin)
        return {here: stored[there] for here, there in pairs.items()}

    def keys(self, number: int) -> dict[str, str]:
        """The checkpoint keys of a node of the SavedObjectGraph by attribute name."""
        node = self._nodes.get(number)
        return {} if node is None else {attribute.name: attribute.checkpoint_key for attribute in node.attributes}

    def path(self, number: int) -> str:
        """A node's path from the root, for messages."""
        return self._paths.get(number, f"node {number}")

    @functools.cached_property
    def _paths(self) -> dict[int, str]:
        paths = {0: "root"}
        queue = [0]
        for here in queue:
            for child in self._graph.nodes[here].children:
                if child.node_id not in paths:
                    paths[child.node_id] = f"{paths[here]}.{child.local_name}"
                    queue.append(child.node_id)
        return paths

    def variable(self, number: int, dtype: tf.DType, shape: tf.TensorShape) -> tf.Tensor:
        """The stored value of a variable.

        Raises:
          MissingValueError: the checkpoint has none.
          ShapeError, SavedModelError: it does not fit, or the checkpoint is missing or damaged.
        """
        key = self.keys(number).get(VALUE) if self._present() else None
        if key is None:
            path = self.path(number)
            reason = f"Key {path} not found: the checkpoint has no value for this variable"
            raise MissingValueError(reason, file=self.prefix, node=path)
        if not tf.executing_eagerly():
            return tf.ensure_shape(self.read(key), shape)
        return to_tensor(self._array(key), dtype, shape)

    def read(self, key: str) -> tf.Tensor:
        """The value under a key; in graph mode an op that reads it when it is run, so that the graph stays small.

        Raises:
          MissingValueError: there is no such key.
          SavedModelError: the checkpoint is damaged.
        """
        if tf.executing_eagerly():
            value = self._array(key)
            return to_tensor(value, tf.dtypes.as_dtype(value.dtype) if value.dtype != object else tf.string)
        dtype = tf.dtypes.as_dtype(self._reader.entry(key).dtype.number)
        return tf.raw_ops.RestoreV2(prefix=self.prefix, tensor_names=[key], shape_and_slices=[""], dtypes=[dtype])[0]

    def _array(self, key: str) -> np.ndarray[Any, Any]:
        """A view of the mapped file."""
        try:
            return self._reader.read(key)
        except MissingKeyError:
            raise MissingValueError(f"Key {key} not found in checkpoint", file=self.prefix, node=key) from None

    def _present(self) -> bool:
        try:
            return OBJECT_GRAPH_KEY in self._reader
        except MissingFileError:
            if self._directory.has_checkpoint:
                raise
            return False

    def close(self) -> None:
        if "_reader" in self.__dict__:
            self._reader.close()


def to_tensor(array: np.ndarray[Any, Any], dtype: tf.DType, shape: Optional[tf.TensorShape] = None) -> tf.Tensor:
    """An eager tensor with a copy of an array from a checkpoint.

    A copy, once, into memory that the runtime can adopt: an array of the checkpoint is a view of a file that others may
    overwrite, and is seldom aligned as tensors must be.

    Args:
      array: as `BundleReader.read` gives it.
      dtype: of the variable.
      shape: of the variable, which the array must fit.

    Raises:
      ShapeError: the array does not fit the shape.
      SavedModelError: the stored dtype is another.
    """
    if shape is not None and not shape.is_compatible_with(array.shape):
        raise ShapeError(f"the checkpoint has shape {array.shape}, the variable {shape}")
    if dtype == tf.string:
        return tf.constant(array, tf.string)
    wanted = np.dtype(dtype.as_numpy_dtype)
    if wanted.itemsize != array.dtype.itemsize:
        raise SavedModelError(f"the checkpoint has {array.dtype}, the variable is {dtype.name}")
    buffer = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return tf.convert_to_tensor(copy.view(wanted))
