"""Variables, and the shape and dtype behind a handle."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.tensorflow_api.functions import ConcreteFunction, Function
from reference_impl.tensorflow_api.lookup import private
from reference_impl.tensorflow_api.messages import from_tf

# A variable without a value, for a restore function to assign; `tf.Variable` needs an initial
# value. In 2.4-2.21.
UninitializedVariable = private("tensorflow.python.ops.resource_variable_ops:UninitializedVariable")


def last_variable_creator(creator: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """Return a scope in which `creator` is the last variable creator, called after strategies and
    other creators.

    `tf.variable_creator_scope` would call it first. `Graph._variable_creator_scope` takes a
    priority in 2.4-2.21.
    """
    return tf.compat.v1.get_default_graph()._variable_creator_scope(creator, priority=50)


def variable_without_value(**keywords: object) -> tf.Variable:
    """Return an UninitializedVariable, made through the active strategies and variable creators."""
    with last_variable_creator(lambda _, **given: UninitializedVariable(**given)):
        return tf.Variable(None, **keywords)


def makes_variables_itself(ours: Callable[..., Any]) -> bool:
    """Return whether `tf.Variable` would make an eager variable without calling a strategy or a
    variable creator except `ours`.

    `Graph._variable_creator_stack` is in 2.4-2.21; no public API lists creators.
    """
    creators = getattr(tf.compat.v1.get_default_graph(), "_variable_creator_stack", None)
    asked = creators is None or any(creator is not ours for _, creator in creators)
    return not asked and tf.executing_eagerly() and not tf.distribute.has_strategy()


def is_only_device() -> bool:
    """Return whether the CPU is the only device, so that a variable shares the memory of a tensor
    that is assigned to it.
    """
    return len(tf.config.list_logical_devices()) == 1


# The constructor of resource variables with a handle, the maker of handles, and the numbers that
# make names unique. In 2.4-2.21.
_BaseResourceVariable = private("tensorflow.python.ops.resource_variable_ops:BaseResourceVariable")
_handle_of = private(
    "tensorflow.python.ops.resource_variable_ops:_variable_handle_from_shape_and_dtype"
)
_uid = private("tensorflow.python.framework.ops:uid")
# The name of resources that nothing finds by their name. In 2.10-2.21.
_anonymous_name = private("tensorflow.python.eager.context:anonymous_name")
_HANDLE_NAME = "variable"
_HAS_DEBUG_NAME = "debug_name" in inspect.signature(tf.raw_ops.VarHandleOp).parameters


def variable_of_handle(
    name: str,
    shape: tf.TensorShape,
    dtype: tf.DType,
    handle: Optional[tf.Tensor] = None,
    **settings: object,
) -> tf.Variable:
    """Return an eager UninitializedVariable, made without `tf.Variable` and its creators, which
    take four times as long.

    The benchmark "load: ResNet50 exported by Keras 3" (docs/evidence/benchmarks.md) justifies it.
    This function does the same as `UninitializedVariable.__init__` outside graphs in 2.4-2.21,
    with the same parts.

    Args:
      name: as `tf.Variable` takes it; the name scope of the caller is put before it.
      shape, dtype: of the variable.
      handle: of a `handle_maker` for the same shape and dtype; by default a new one.
      settings: trainable, synchronization, aggregation.
    """
    with tf.name_scope(name or "Variable") as scope:
        pass
    plain = scope[:-1]
    made = UninitializedVariable.__new__(UninitializedVariable)
    if handle is None:
        handle = _new_handle(shape, dtype)
    handle._parent_trackable, handle._name, handle._unique_id = (
        weakref.ref(made),
        f"{plain}:0",
        f"{plain}_{_uid()}",
    )
    _BaseResourceVariable.__init__(
        made,
        shape=shape,
        dtype=dtype,
        handle=handle,
        unique_id=handle._unique_id,
        handle_name=plain,
        in_graph_mode=False,
        **settings,
    )
    return made


def _new_handle(shape: tf.TensorShape, dtype: tf.DType) -> tf.Tensor:
    # With its own name the op would get its own kernel, which the runtime makes (0.1 ms) and keeps
    # forever (37 KB).
    return _handle_of(shape, dtype, shared_name=None, name=_HANDLE_NAME, graph_mode=False)


def handle_maker(shape: tf.TensorShape, dtype: tf.DType) -> Callable[[], tf.Tensor]:
    """Return a function that makes eager handles for variables of one shape and dtype.

    The first handle is TensorFlow's own. The others come from the same op with the same attributes
    and share its description of shape and dtype, which takes half the time. `_handle_data` and the
    container of a graph are in 2.4-2.21, the attribute `debug_name` is in 2.16-2.21.
    """
    first: list[tf.Tensor] = [_new_handle(shape, dtype)]
    described = first[0]._handle_data
    attributes = {
        "dtype": dtype,
        "shape": shape,
        "shared_name": _anonymous_name(),
        "container": tf.compat.v1.get_default_graph()._container or "",
        "name": _HANDLE_NAME,
        **({"debug_name": _HANDLE_NAME} if _HAS_DEBUG_NAME else {}),
    }

    def make() -> tf.Tensor:
        if first:
            return first.pop()
        handle = tf.raw_ops.VarHandleOp(**attributes)
        handle._handle_data = described
        return handle

    return make


def set_initializer(variable: tf.Variable, operation: tf.Operation) -> None:
    """Make an operation the initialiser of an UninitializedVariable in sessions; by itself it has
    none. In 2.4-2.21.
    """
    variable._initializer_op = operation


def is_variable(obj: object) -> bool:
    """Return whether an object is a resource variable, or a wrapper of one (by Keras 3 or a
    strategy). In 2.12-2.21.
    """
    if isinstance(
        obj, (tf.Variable, ConcreteFunction, Function)
    ):  # reading attributes of a loaded function would build a graph
        return isinstance(obj, tf.Variable)
    # The handle of a strategy's variable exists only in some scopes; elsewhere the property raises
    # an error.
    return (
        bool(getattr(obj, "_should_act_as_resource_variable", False))
        and inspect.getattr_static(obj, "handle", None) is not None
    )


def variable_components(obj: object) -> list[Any]:
    """Return the plain variables behind a variable: one, or one for each replica of a strategy."""
    components = getattr(obj, "values", None)
    if isinstance(obj, tf.Variable) and isinstance(components, (tuple, list)):
        return list(components)
    value = getattr(obj, "value", None)
    return variable_components(value) if isinstance(value, tf.Variable) else [obj]


def variable_parts(obj: object) -> list[Any]:
    """Return the plain variables behind a variable; an empty list for any other object."""
    return variable_components(obj) if is_variable(obj) else []


def parts_of_variables(objects: Iterable[object]) -> list[list[Any]]:
    """Return the `variable_parts` of each object."""
    return [variable_parts(obj) for obj in objects]


def whole(tensor: tf.Tensor) -> tf.Tensor:
    """Return a sharded DTensor as one that every device has whole, and any other eager tensor as it
    is.

    It is the only way to read one that also works with several processes. All is public in
    2.10-2.21. The device is asked first, since other questions make the device of DTensors in a
    process without any.
    """
    dtensor = tf.experimental.dtensor
    if "CUSTOM" not in tensor.device or not dtensor.is_dtensor(tensor):
        return tensor
    layout = dtensor.fetch_layout(tensor)
    whole_layout = dtensor.Layout.replicated(layout.mesh, layout.rank)
    return tensor if layout == whole_layout else dtensor.relayout(tensor, whole_layout)


def cached_variables(tensors: Iterable[tf.Tensor]) -> dict[int, tf.Variable]:
    """Return the variables whose cached values are among captured tensors, by the position of the
    tensor.

    `_cached_variable` is in 2.3-2.21.
    """
    found = {}
    for index, tensor in enumerate(tensors):
        reference = getattr(tensor, "_cached_variable", None)
        variable = None if reference is None else reference()
        if variable is not None:
            found[index] = variable
    return found


def replica_handle(variable: tf.Variable) -> Optional[tf.Tensor]:
    """Return the handle of a strategy's variable in the calling replica, or None outside replicas.

    The handle exists in replicas, in updates of a strategy, and without an active strategy.
    Elsewhere `handle` raises (2.4-2.21).
    """
    try:
        return variable.handle
    except ValueError:
        return None


# Copies the shape and dtype behind a resource or variant tensor to another one; gradients need
# them. In 2.4-2.21.
copy_handle_data = private("tensorflow.python.ops.handle_data_util:copy_handle_data")
_get_handle_data = private("tensorflow.python.ops.resource_variable_ops:get_eager_safe_handle_data")


def dtype_of_handle(handle: tf.Tensor) -> Optional[tf.DType]:
    """Return the dtype of the variable behind a handle, or None if unknown. In 2.4-2.21."""
    found = _get_handle_data(handle)
    known = found is not None and found.is_set and len(found.shape_and_type) == 1
    return tf.dtypes.as_dtype(found.shape_and_type[0].dtype) if known else None


# Notifies tapes and graphs of a variable whose handle is an argument of a call; they notice only
# reads. In 2.4-2.21.
variable_accessed = private("tensorflow.python.ops.resource_variable_ops:variable_accessed")


def handle_data(handle: tf.Tensor) -> list[Any]:
    """Return dtype and shape of the values behind a handle, as messages of an ArgDef (ours).

    In 2.4-2.21.
    """
    found = _get_handle_data(handle)
    parts = found.shape_and_type if found is not None and found.is_set else ()
    make = schema.ResourceHandleProto.DtypeAndShape
    return [
        make(dtype=part.dtype, shape=from_tf(part.shape, schema.TensorShapeProto)) for part in parts
    ]


def unusable_handle(like: tf.Tensor, message: str) -> tf.Tensor:
    """Return a handle for the function that is being traced.

    Using it raises an error, and the function cannot be saved.

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


# `strategy.extended.update` enters this context for each replica. Same place in 2.4-2.21.
_UpdateContext = private("tensorflow.python.distribute.distribute_lib:UpdateContext")


@contextlib.contextmanager
def as_first_replica() -> Iterator[None]:
    """Trace functions over the first component of each variable of a strategy, in any scope of the
    caller.

    A file has one variable for all components. `Graph._distribution_strategy_stack` is in 2.4-2.21.
    """
    graph = tf.compat.v1.get_default_graph()
    stack = graph._distribution_strategy_stack
    graph._distribution_strategy_stack = []  # no strategy is active, as outside its scope
    try:
        with _UpdateContext(0):
            yield
    finally:
        graph._distribution_strategy_stack = stack
