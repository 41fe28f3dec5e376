"""Variables: real `tf.Variable`s, made with their values.

RFC: PRIM-01, RP-03, INIT-01
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import DtypeError, MissingValueError, SavedModelError, ShapeError
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.functions.devices import checked_device
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds import user_object
from reference_impl.kinds.kind import Export, Kind, SavedNode
from reference_impl.tracing import Watch

_log = logging.getLogger(__name__)

_SETTINGS = (
    *("trainable", "caching_device", "name", "shape", "dtype", "constraint"),
    *("synchronization", "aggregation", "distribute_strategy"),
)
_ON_READ = tf.VariableSynchronization.ON_READ


class VariableKind(Kind):
    """Variables. Dtype, shape and settings; the value is in the checkpoint."""

    message = node_kinds.VARIABLE

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> tf.Variable:
        """Make the variable of a `variable` node, with its value from the checkpoint.

        Raises the errors of `Checkpoint.variable` and `Checkpoint.read`.
        """
        return _read(load, number, node)

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Set the children. A variable has children only if it is the root: its signatures."""
        if node.children:
            user_object.attach_attributes(load, number, node)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the settings of the variable, with its device or its components if asked for."""
        _write(out.variable, node.object, node.parts, export.devices, export.expand)


def _read(load: LoadContext, number: int, node: schema.SavedObject) -> tf.Variable:
    device = node.variable.device if load.options.keep_variable_devices else ""
    if device:
        checked_device(device, load.file, load.path(number))
    key: Optional[str] = None
    left = ""
    try:
        without = load.options.skip_checkpoint or load.has_saver(number)
        key = None if without else load.checkpoint.variable(number, node.variable)
        if key is None or not are_made_here():
            made = make(node.variable, None if key is None else load.checkpoint.read(key), device)
        else:
            with (
                tf.device(device) if device else contextlib.nullcontext()
            ):  # tf.device(None) would leave a scope (DEV-02)
                made = api.variable_of_handle(
                    **_settings(node.variable)
                )  # several times faster than `make`
                load.checkpoint.assign(made, key)
    except (MissingValueError, ShapeError, DtypeError) as error:
        error.node = load.path(number)
        if not load.options.allow_partial_checkpoint:
            if not isinstance(error, MissingValueError):
                error.reason += (
                    ". LoadOptions(allow_partial_checkpoint=True) loads the rest of the model"
                )
            raise
        _log.warning("left without a value: %s", error)
        key, left = None, error.reason
        made = make(node.variable, None, device)
    except SavedModelError as error:
        error.node = error.node or load.path(number)
        raise
    if load.watch is not None:
        tell_value(load, load.watch, number, key, left)
    return made


def tell_value(
    load: LoadContext, watch: Watch, number: int, key: Optional[str], left: str = ""
) -> None:
    """Tell which value a variable got, or why it was `left` without one."""
    if key is not None:
        said = f"variable from {load.checkpoint.described(key)}"
    elif left:
        said = f"left without a value: {left}"
    elif load.options.skip_checkpoint:
        said = "left without a value: skip_checkpoint"
    else:
        said = "no value yet: a registered checkpoint saver restores it"
    watch.tell("value", load.checkpoint.index, load.label(number), said, "RP-08")


def _settings(proto: schema.SavedVariable) -> dict[str, Any]:
    """Return the keywords of a `tf.Variable` that a SavedVariable describes."""
    return {
        "name": proto.name,
        "shape": specs.shape_of(proto.shape),
        "dtype": specs.tf_dtype(proto.dtype),
        **roles(proto),
    }


def roles(proto: schema.SavedVariable) -> dict[str, Any]:
    """Return the keywords of a `tf.Variable` that say how it is trained and replicated."""
    return {
        "trainable": proto.trainable,
        "synchronization": tf.VariableSynchronization(proto.synchronization),
        "aggregation": tf.VariableAggregation(proto.aggregation),
    }


def are_made_here() -> bool:
    """Return whether no strategy and no variable creator takes part in making eager variables."""
    return api.makes_variables_itself(_create)


def make(proto: schema.SavedVariable, value: Optional[tf.Tensor], device: str = "") -> tf.Variable:
    """Make the variable that a SavedVariable describes through `tf.Variable`, so that strategies
    and variable creators apply.

    `value` has its dtype and a compatible shape; None leaves the variable without a value. By
    default the caller's device scopes decide about the device.
    """
    keywords = {**_settings(proto), "name": proto.name or None}
    if value is not None and not tf.executing_eagerly():
        value = tf.ensure_shape(value, keywords["shape"])
    with (
        tf.device(device) if device else contextlib.nullcontext()
    ):  # tf.device(None) would leave a scope (DEV-02)
        if value is None:
            return api.variable_without_value(**keywords)
        # A load inside a tf.function is not a part of the function, so its variables are not lifted
        # out of it.
        made = tf.Variable(value, experimental_enable_variable_lifting=False, **keywords)
    if not tf.executing_eagerly():
        # A session initialises variables loaded into a graph; an optimizer of TF 1 does not train
        # them by default (COMPAT-01).
        trained = tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        trained[:] = [variable for variable in trained if variable is not made]
        return made
    parts = api.variable_components(made)
    dtype = keywords["dtype"]
    if len(parts) > 1 and (made.synchronization, made.aggregation) == (
        _ON_READ,
        tf.VariableAggregation.SUM,
    ):
        for index, part in enumerate(
            parts
        ):  # the sum over the replicas of a strategy is the value (DIST-04)
            share = (
                value / len(parts)
                if dtype.is_floating
                else value
                if index == 0
                else tf.zeros_like(value)
            )
            part.assign(tf.cast(share, dtype))
    return made


def made_with_values() -> contextlib.AbstractContextManager[None]:
    """Speed up the eager creation of variables inside the context: only a handle is made and the
    value assigned.
    """
    return api.last_variable_creator(_create)


def _create(next_creator: Callable[..., tf.Variable], **settings: object) -> tf.Variable:
    """Make a variable, as a variable creator, in a third of the time that `tf.Variable` needs for
    general initial values.

    Variables that a registered class makes when it is revived do not have lifting turned off, as
    `make` does, and are left alone.
    """
    if settings.get("experimental_enable_variable_lifting") is not False:
        return next_creator(**settings)
    value = settings.get("initial_value")
    if callable(value):  # of a strategy
        value = value()
    if not isinstance(value, tf.Tensor):
        return next_creator(**settings)
    variable = api.UninitializedVariable(
        **{key: settings[key] for key in _SETTINGS if key in settings}
    )
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
    return variable


def name_of(variable: tf.Variable) -> str:
    """Return the name of a variable without the number of its tensor."""
    return str(variable.name).split(":")[0]


def _write(
    out: schema.SavedVariable,
    variable: tf.Variable,
    parts: Sequence[Any],
    devices: bool,
    expand: bool,
) -> None:
    """Write a `tf.Variable` or a variable of Keras as a SavedVariable, with its device or its
    component variables, `parts`, if asked for.

    Data that a wrapper lacks is taken from the variable inside it.
    """
    inner = parts[0]
    holder = variable if isinstance(variable, tf.Variable) else inner
    out.dtype = inner.dtype.as_datatype_enum
    out.shape.CopyFrom(specs.shape_proto(inner.shape))
    out.trainable = bool(variable.trainable)
    out.name = name_of(holder)
    out.synchronization = int(holder.synchronization.value)
    out.aggregation = int(holder.aggregation.value)
    if devices:
        out.device = inner.device
    if expand and len(parts) > 1:
        for part in parts:
            out.experimental_distributed_variable_components.add(
                name=name_of(part), device=part.device
            )


KIND = VariableKind()
