"""What a session has to run for what was loaded into a graph of `tf.compat.v1`.

In a graph nothing has run when the load ends. The collections that sessions and `MonitoredSession`
initialise say what is to be run.

RFC: COMPAT-01
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api

_KEYS = tf.compat.v1.GraphKeys
# The collection in which tf.saved_model.load puts what restores the variables of a TF 1.x model.
_RESTORING = "saved_model_initializers"


@contextmanager
def new_operations() -> Iterator[list[tf.Operation]]:
    """Collect the operations that join the default graph, in a list that is filled when the context ends; empty while eager."""
    found: list[tf.Operation] = []
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    before = 0 if graph is None else len(graph.get_operations())
    yield found
    if graph is not None:
        found.extend(graph.get_operations()[before:])


@contextmanager
def noted_as_initializers() -> Iterator[None]:
    """Note every function that is called meanwhile as an initialiser of tables."""
    with new_operations() as operations:
        yield
    for operation in operations:
        if operation.type == "StatefulPartitionedCall":
            tf.compat.v1.add_to_collection(_KEYS.TABLE_INITIALIZERS, operation)


class Initialization:
    """How variables get their values that a function of the model assigns, not an initial value of their own.

    While eager the functions have run, and nothing is noted.

    Args:
      variables: all that were made; in a graph they are among its global variables.
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
        """Run `initialize`, which also gives values to those of `variables` that are not restored."""
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
        """Take variables that nothing gives a value out of the graph's collections: a session would wait for them."""
        if not self._in_graph:
            return
        listed = tf.compat.v1.get_collection_ref(_KEYS.GLOBAL_VARIABLES)
        listed[:] = [variable for variable in listed if id(variable) not in self._waiting]
        for variable in self._waiting.values():
            api.set_initializer(variable, tf.no_op())
