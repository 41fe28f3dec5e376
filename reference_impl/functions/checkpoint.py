"""The checkpoint of a load: the keys of the objects, and the values.

Keys are found before any object is made, so variables are created with their values and nothing is
restored afterwards.

RFC: RP-08, V1-18, OPT-02
"""

from __future__ import annotations

import functools
import os
from typing import Optional

import tensorflow as tf

from reference_impl.errors import MissingFileError, MissingKeyError, MissingValueError
from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry, index_file
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container.layout import Layout
from reference_impl.format.names import OBJECT_GRAPH_KEY, VALUE
from reference_impl.functions import steps
from reference_impl.functions.tensors import Values
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.saved_variables import check_value
from reference_impl.load_options import LoadOptions
from reference_impl.tracing import Watch


class Checkpoint(Values):
    """The checkpoint of one SavedModel.

    The options ``weights`` and ``verify_mapped`` choose how large values are read.
    """

    def __init__(
        self,
        directory: Layout,
        graph: schema.SavedObjectGraph,
        options: LoadOptions,
        watch: Optional[Watch] = None,
    ):
        self.prefix = os.fspath(directory.checkpoint_prefix)
        self.index = index_file(self.prefix)
        self._directory = directory
        self._graph = graph
        self._placed = False
        self._watch = watch
        super().__init__(self._open, options)

    def _open(self) -> BundleReader:
        reader = BundleReader(self.prefix)
        if self._watch is not None:
            steps.tell_opened(self._watch, reader)
        return reader

    @functools.cached_property
    def keys(self) -> dict[int, dict[str, str]]:
        """The checkpoint keys of the nodes of the SavedObjectGraph by attribute name, of those that
        have any.
        """
        return checkpoint_keys(self._graph, self._reader.object_graph())

    @functools.cached_property
    def paths(self) -> Paths:
        """The paths of the nodes of the SavedObjectGraph."""
        return Paths(self._graph.nodes)

    def variable(self, number: int, variable: schema.SavedVariable) -> str:
        """Return the key of the value of a variable (the node `number` of the object graph), after
        checking that the value fits.

        Raises MissingValueError if there is no such value or no checkpoint, and the errors of
        `check_value` and of a damaged checkpoint.
        """
        key = self.keys.get(number, {}).get(VALUE) if self._present else None
        if key is None:
            path = self.paths.from_root(number)
            reason = f"Key {path} not found: the checkpoint has no value for this variable"
            raise MissingValueError(reason, file=self.prefix, node=path, rule="SM-LOAD-2")
        check_value(variable, self._entry(key), self.prefix)
        return key

    def read(self, key: str) -> tf.Tensor:
        """Return the value of a key.

        In graph mode, return an op that reads it when it runs, so that the graph stays small.

        Raises MissingValueError if there is no such key, and the errors of a damaged checkpoint.
        """
        entry = self._entry(key)
        if tf.executing_eagerly():
            return super().read(key)
        self.check_places()
        dtype = tf.dtypes.as_dtype(entry.dtype.number)
        return tf.raw_ops.RestoreV2(
            prefix=self.prefix, tensor_names=[key], shape_and_slices=[""], dtypes=[dtype]
        )[0]

    def described(self, key: str) -> str:
        """Return a key with the dtype and shape of its value, for the steps of a load."""
        return steps.stored_text(key, self._entry(key))

    def check_places(self) -> None:
        """Check, before TensorFlow itself opens the shards, that they are regular files that match
        the index.
        """
        if not self._placed:
            self._reader.check_places()
            self._placed = True

    def _entry(self, key: str) -> Entry:
        try:
            return self._reader.entry(key)
        except MissingKeyError:
            raise MissingValueError(
                f"Key {key} not found in checkpoint", file=self.prefix, node=key
            ) from None

    @functools.cached_property
    def _present(self) -> bool:
        try:
            return OBJECT_GRAPH_KEY in self._reader
        except MissingFileError:
            if self._directory.has_checkpoint:  # a shard is missing
                raise
            raise self._directory.no_checkpoint() from None

    def close(self) -> None:
        super().close()
        if "_reader" in self.__dict__:
            self._reader.close()
