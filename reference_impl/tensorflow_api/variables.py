"""Variables, and what is known of the value behind a handle."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.tensorflow_api.functions import ConcreteFunction
from reference_impl.tensorflow_api.lookup import private
from reference_impl.tensorflow_api.messages import from_tf

# A variable without a value, which a restore function is going to assign: tf.Variable always wants an initial one. In 2.4-2.21.
UninitializedVariable = private("tensorflow.python.ops.resource_variable_ops:UninitializedVariable")


def last_variable_creator(creator: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """A scope in which `creator` makes the variables when strategies and other creators in force have had their say.

    `tf.variable_creator_scope` would ask it first. `Graph._variable_creator_scope` takes a priority in 2.4-2.21.
    """
    return tf.compat.v1.get_default_graph()._variable_creator_scope(creator, priority=50)


def variable_without_value(**keywords: Any) -> tf.Variable:
    """An UninitializedVariable, made through the strategies and variable creators in force."""
    with last_variable_creator(lambda _, **given: UninitializedVariable(**given)):
        return tf.Variable(None, **keywords)


def set_initializer(variable: tf.Variable, operation: tf.Operation) -> None:
    """Let an operation be what initialises a variable in a session. An UninitializedVariable has none. In 2.4-2.21."""
    variable._initializer_op = operation


def is_variable(obj: Any) -> bool:
    """A resource variable, or a wrapper that stands for one (of Keras 3, of a strategy). The hook is in 2.12-2.21."""
    if isinstance(obj, (tf.Variable, ConcreteFunction)):  # asking a loaded function for more than it has makes its graph
        return isinstance(obj, tf.Variable)
    # The handle of a variable of a strategy is there in some scopes only, and asking for it raises in others.
    return (
        bool(getattr(obj, "_should_act_as_resource_variable", False)) and inspect.getattr_static(obj, "handle", None) is not None
    )


def variable_components(obj: Any) -> list[Any]:
    """The plain variables behind a variable: one, or one for each replica of a strategy."""
    components = getattr(obj, "values", None)
    if isinstance(obj, tf.Variable) and isinstance(components, (tuple, list)):
        return list(components)
    value = getattr(obj, "value", None)
    return variable_components(value) if isinstance(value, tf.Variable) else [obj]


def cached_variable(tensor: Any) -> Optional[tf.Variable]:
    """Return the variable whose cached value a captured tensor is, None for other tensors. `_cached_variable` is in 2.3-2.21."""
    variable = getattr(tensor, "_cached_variable", None)
    return None if variable is None else variable()


def replica_handle(variable: Any) -> Optional[tf.Tensor]:
    """Return the handle of a strategy's variable in the calling replica, None outside of replicas.

    There is one in replicas, in updates of a strategy, and where no strategy is in force. Elsewhere `handle` raises (2.4-2.21).
    """
    try:
        return variable.handle
    except ValueError:
        return None


_copy_handle_data = private("tensorflow.python.ops.handle_data_util:copy_handle_data")
_get_handle_data = private("tensorflow.python.ops.resource_variable_ops:get_eager_safe_handle_data")


def copy_handle_data(source: tf.Tensor, target: tf.Tensor) -> None:
    """Tell the shape and dtype behind a resource or variant tensor to the gradient code. In 2.4-2.21."""
    _copy_handle_data(source, target)


def dtype_behind(handle: tf.Tensor) -> Optional[tf.DType]:
    """The dtype of the variable behind a handle, None when nothing is known. In 2.4-2.21."""
    found = _get_handle_data(handle)
    known = found is not None and found.is_set and len(found.shape_and_type) == 1
    return tf.dtypes.as_dtype(found.shape_and_type[0].dtype) if known else None


# A variable whose handle is an argument of a call: tapes and graphs watch what is read, and this is no read. In 2.4-2.21.
variable_accessed = private("tensorflow.python.ops.resource_variable_ops:variable_accessed")


def behind_handle(handle: tf.Tensor) -> list[Any]:
    """What is known of the values behind a handle, as messages of an ArgDef (ours). In 2.4-2.21."""
    found = _get_handle_data(handle)
    parts = found.shape_and_type if found is not None and found.is_set else ()
    make = schema.ResourceHandleProto.DtypeAndShape
    return [make(dtype=part.dtype, shape=from_tf(part.shape, schema.TensorShapeProto)) for part in parts]


def unusable_handle(like: tf.Tensor, message: str) -> tf.Tensor:
    """Return a handle for the function that is being traced: it raises when it is used, and the function cannot be saved.

    `FuncGraph.mark_as_unsaveable` is in 2.4-2.21.
    """
    graph = tf.compat.v1.get_default_graph()
    if hasattr(graph, "mark_as_unsaveable"):
        graph.mark_as_unsaveable(message)
    used = tf.debugging.Assert(tf.compat.v1.placeholder_with_default(False, shape=()), [message])
    with tf.control_dependencies([used]):
        made = tf.compat.v1.placeholder(tf.resource)
    copy_handle_data(like, made)
    return made
