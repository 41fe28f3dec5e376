"""Give the variables of a TF 1.x model their values: at once or, in a graph, when a session runs
the recorded operations.

RFC: COMPAT-01
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in.graph_mode import new_operations

_KEYS = tf.compat.v1.GraphKeys
# The collection in which tf.saved_model.load puts the operations that restore the variables of a TF
# 1.x model.
_RESTORING = "saved_model_initializers"


class Initialization:
    """The initialisation of variables whose values a function of the model assigns, instead of an
    initial value.

    In eager mode the functions have already run, and nothing is recorded.
    """

    def __init__(self, variables: Iterable[tf.Variable]):
        self._in_graph = not tf.executing_eagerly()
        self._waiting = {id(variable): variable for variable in variables}
        self._restore: Optional[tf.Operation] = None
        self.initialized: list[tf.Variable] = []

    def by_restoring(self, restore: Callable[[], Any], variables: Iterable[tf.Variable]) -> None:
        """Run `restore`, which gives `variables` their values."""
        self._restore = self._noted(_RESTORING, restore)
        self._give(variables, self._restore)

    def by_init_op(self, initialize: Callable[[], Any], variables: Iterable[tf.Variable]) -> None:
        """Run `initialize`, which also gives values to those of `variables` that are not
        restored.
        """
        made = self._noted(_KEYS.TABLE_INITIALIZERS, initialize)
        waiting = [variable for variable in variables if id(variable) in self._waiting]
        if waiting and self._restore is not None:
            # All global variables are initialised at once, and the init op may read restored ones.
            with tf.control_dependencies([self._restore]), new_operations() as operations:
                initialize()
            made = tf.group(*operations)
        self._give(waiting, made)

    def _noted(self, collection: str, run: Callable[[], Any]) -> Optional[tf.Operation]:
        with new_operations() as operations:
            run()
        if not self._in_graph:
            return None
        operation = tf.group(*operations)
        tf.compat.v1.add_to_collection(collection, operation)
        return operation

    def _give(self, variables: Iterable[tf.Variable], operation: Optional[tf.Operation]) -> None:
        for variable in variables if operation is not None else ():
            if self._waiting.pop(id(variable), None) is not None:
                api.set_initializer(variable, operation)
                self.initialized.append(variable)

    def finish(self) -> None:
        """Remove variables that never get a value from the graph's collections, because a session
        would wait for them.
        """
        if not self._in_graph:
            return
        listed = tf.compat.v1.get_collection_ref(_KEYS.GLOBAL_VARIABLES)
        listed[:] = [variable for variable in listed if id(variable) not in self._waiting]
        for variable in self._waiting.values():
            api.set_initializer(variable, tf.no_op())
