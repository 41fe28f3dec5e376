"""Initialisation by a session, for objects that were loaded into a graph of `tf.compat.v1`.

In a graph, nothing has run when the load ends. The ops to run are in the collections that sessions
and `MonitoredSession` initialise.

RFC: COMPAT-01
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf


@contextmanager
def new_operations() -> Iterator[list[tf.Operation]]:
    """Collect the operations added to the default graph, in a list that is filled when the context
    ends; empty in eager mode.
    """
    found: list[tf.Operation] = []
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    before = 0 if graph is None else len(graph.get_operations())
    yield found
    if graph is not None:
        found.extend(graph.get_operations()[before:])


@contextmanager
def initializer_ops() -> Iterator[None]:
    """Add every function called inside the context to the initialisers of tables."""
    with new_operations() as operations:
        yield
    for operation in operations:
        if operation.type == "StatefulPartitionedCall":
            tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, operation)
