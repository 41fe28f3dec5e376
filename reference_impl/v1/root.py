"""The root of a loaded TF 1.x model.

The root has the attributes that `tf.saved_model.load` gives a TF 1.x model: ``signatures``,
``variables``, ``asset_paths``, ``prune``. The file has no object structure to restore.

RFC: V1-01, V1-03, V1-08, GOAL-14
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import graph_mode
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.kinds import user_object
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.live_signatures import prune
from reference_impl.v1.pruning import Feeds
from reference_impl.v1.restore import Restore


class Initializer(api.SharedResource):
    """Runs the ops that a session runs after the restore: the init op, or the collected
    initialisers.
    """

    def __init__(self, function: Optional[RegisteredFunction]):
        self._function = function
        super().__init__()

    def create(self) -> tf.Tensor:
        return tf.constant(1.0)

    def initialize(self) -> Any:
        return None if self._function is None else self._function()


@dataclass(frozen=True, eq=False)
class Loaded:
    """The parts of a load that the methods of its root use."""

    live: LiveProgram
    restore: Restore
    init: Optional[RegisteredFunction]


class V1Root(user_object.LoadedObject):
    """The root object of a TF 1.x MetaGraph.

    Attributes:
      signatures: key -> function.
      variables: all variables that have a value, in the order of the graph.
      uninitialized_variables: names of the variables that got no value from the checkpoint or the
        init op.
      asset_paths: the files of the model, as assets.
      resources: tables and other shared state.
    """

    _unsearched = user_object.LoadedObject._unsearched | {"uninitialized_variables", "initializer"}

    @property
    def _of_load(self) -> Loaded:
        found: Loaded = vars(self)["_loaded"]
        return found

    @property
    def graph(self) -> tf.Graph:
        """The graph of the file, without state.

        Its tensors can be passed to `prune`.

        Its collections have only tensors, operations and numbers
        (``graph.get_collection("train_op")``).

        Raises:
          ValueError: an op of the graph is not known here.
        """
        if "_graph" not in vars(self):
            theirs = api.to_tf(self._of_load.live.meta_graph, tf.compat.v1.MetaGraphDef)
            with tf.Graph().as_default() as graph:
                ops = theirs.meta_info_def.stripped_op_list
                tf.graph_util.import_graph_def(
                    theirs.graph_def, name="", producer_op_list=ops if ops.op else None
                )
            _add_collections(graph, theirs.collection_def)
            self.__dict__["_graph"] = graph
        return vars(self)["_graph"]

    @property
    def initializer(self) -> Initializer:
        """The initialisation that ran after the restore; ``initializer.initialize()`` runs it
        again.
        """
        if "_initializer" not in vars(self):
            self.__dict__["_initializer"] = Initializer(self._of_load.init)
        found: Initializer = vars(self)["_initializer"]
        return found

    def prune(
        self,
        feeds: object,
        fetches: object,
        name: Optional[str] = None,
        input_signature: Optional[tuple[Any, Any]] = None,
        are_keyword_args_also_positional: bool = False,
    ) -> RegisteredFunction:
        """Return a function from some tensors of the graph to others.

        Args:
          feeds: nested tensors of the graph or their names (``"x:0"``). They become arguments in
            this order, which may also be passed by the names of their operations (``x``). Or a
            mapping from the names of arguments to tensors.
          fetches: nested tensors or their names, composite tensors, TensorInfos, and operations or
            their names (``"train_op"``), which are run and return None. The function returns
            tensors in the same structure.
          name: of the function.
          input_signature: ``(args, kwargs)``, nested TensorSpecs, one for each feed in order: the
            function is called with this structure.
          are_keyword_args_also_positional: whether the keyword arguments of ``input_signature`` may
            be passed without a name.

        Raises:
          UnknownTensorError: there is no such tensor or operation.
          SavedModelError: a tensor is inside of a loop or, to be fed, of a branch, or the fetches
            need a placeholder that is not fed. A fetch in a branch fails if the other branch is
            taken.
          BindingError: a feed or fetch has another type, or the feeds do not fit the input
            signature.
        """
        given = Feeds(feeds, input_signature, are_keyword_args_also_positional)
        return prune(self._of_load.live, given, fetches, name or "pruned")

    def restore(self, prefix: object) -> Optional[tf.Operation]:
        """Read the variables from another checkpoint of the same graph, written by its
        tf.train.Saver.

        Args:
          prefix: of the checkpoint, a path or a string tensor.

        Returns:
          None, or in graph mode the operation that restores, which a session has to run.

        Raises:
          tf.errors.OpError: the checkpoint does not exist or lacks a variable.
        """
        if isinstance(prefix, (str, os.PathLike)):
            prefix = tf.constant(os.fspath(prefix))
        with graph_mode.new_operations() as operations:
            self._of_load.restore.run(prefix)
        return None if self._of_load.live.library.eager else tf.group(*operations)


def _add_collections(graph: tf.Graph, collections: Any) -> None:
    for key, collection in collections.items():
        values = list(collection.int64_list.value) or list(collection.float_list.value)
        for name in collection.node_list.value:
            try:
                values.append(graph.as_graph_element(name))
            except (KeyError, ValueError):  # the exporter cleared the node and left its name
                continue
        for value in values:
            graph.add_to_collection(key, value)
