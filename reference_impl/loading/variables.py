"""Variables: real `tf.Variable`s, made with their values (PRIM-01, RP-03, INIT-01)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reference_impl import specs
from reference_impl.format import dtypes, structure
from reference_impl.format.errors import SavedModelError
from reference_impl.loading.checkpoint import Checkpoint, to_tensor


def make(proto: Any, number: int, checkpoint: Checkpoint) -> tf.Variable:
    """The variable that a SavedVariable describes, with its value from the checkpoint.

    It is made through `tf.Variable`, so that strategies and variable creators in force have their say.

    Args:
      proto: a SavedVariable.
      number: of the node in the object graph.

    Raises:
      MissingValueError: the checkpoint has no value.
      ShapeError, DtypeError, SavedModelError: the value does not fit.
    """
    dtype = specs.dtype_to_tf(dtypes.by_number(proto.dtype))
    shape = specs.shape_to_tf(structure.decode_shape(proto.shape))
    try:
        value = to_tensor(checkpoint.variable(number), dtype, shape)
    except SavedModelError as error:
        error.node = error.node or checkpoint.path(number)
        raise
    return tf.Variable(
        value,
        trainable=proto.trainable,
        name=proto.name or None,
        dtype=dtype,
        shape=shape,
        synchronization=tf.VariableSynchronization(proto.synchronization),
        aggregation=tf.VariableAggregation(proto.aggregation),
        experimental_enable_variable_lifting=False,  # a load inside a tf.function is no part of the function
    )
