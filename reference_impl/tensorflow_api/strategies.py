"""The context of tf.distribute in which functions are traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from reference_impl.tensorflow_api.lookup import private

# What `strategy.extended.update` enters for each replica. Same place in 2.4-2.21.
_UpdateContext = private("tensorflow.python.distribute.distribute_lib:UpdateContext")


@contextlib.contextmanager
def as_first_replica() -> Iterator[None]:
    """Trace functions over the first of the variables behind each variable of a strategy, whatever scope the caller is in.

    A file has one variable for them. `Graph._distribution_strategy_stack` is in 2.4-2.21.
    """
    graph = tf.compat.v1.get_default_graph()
    stack = graph._distribution_strategy_stack
    graph._distribution_strategy_stack = []  # no strategy is in force, as outside of its scope
    try:
        with _UpdateContext(0):
            yield
    finally:
        graph._distribution_strategy_stack = stack
