"""Everything that `reference_impl` takes from TensorFlow without its being public API, and the border to its messages.

No other module imports from `tensorflow.python`. Each entry says why public API does not do and in which versions the
symbol was seen (read from the wheels of 2.12, 2.15 and 2.21).

Messages cross the border as bytes: `reference_impl.format.schema` has classes of its own, TensorFlow has its own, and
neither may be handed to the other.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl.format import schema


def _private(*candidates: str) -> Any:
    """The first of several homes `module:symbol` that exists in the running TensorFlow."""
    for candidate in candidates:
        module, _, symbol = candidate.partition(":")
        try:
            return getattr(importlib.import_module(module), symbol)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"TensorFlow {tf.__version__} has none of {', '.join(candidates)}; 2.12 to 2.21 do")


# The classes of tf.function objects: an imported function must be one, or neither Keras nor TensorFlow's own writer takes it
# for a function. tf.types.experimental has only abstract bases. Same module in 2.12-2.21.
Function = _private("tensorflow.python.eager.polymorphic_function.polymorphic_function:Function")
# concrete_function since 2.14 or 2.15; monomorphic_function in 2.12.
ConcreteFunction = _private(
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction",
    "tensorflow.python.eager.polymorphic_function.monomorphic_function:ConcreteFunction",
)

# Resources and assets: public as tf.saved_model.Asset and tf.saved_model.experimental.TrackableResource, but the
# namespace tf.saved_model is what this package must do without. Same modules in 2.12-2.21.
Trackable = _private("tensorflow.python.trackable.base:Trackable")
Asset = _private("tensorflow.python.trackable.asset:Asset")
TrackableResource = _private("tensorflow.python.trackable.resource:TrackableResource")
CapturableResource = _private("tensorflow.python.trackable.resource:CapturableResource")

# A variable without a value, which a restore function is going to assign: tf.Variable always wants an initial one. In 2.4-2.21.
UninitializedVariable = _private("tensorflow.python.ops.resource_variable_ops:UninitializedVariable")

# Is a gradient tape or a forward accumulator active? No public API tells. In eager/tape.py and eager/record.py; what both ask
# is here in 2.4-2.21.
_tape_set_is_empty = _private("tensorflow.python.pywrap_tfe:TFE_Py_TapeSetIsEmpty")
_context = _private("tensorflow.python.eager.context:context")
_execute = _private("tensorflow.python.eager.execute:execute")
_op_def = _private("tensorflow.python.framework.op_def_registry:get")
_copy_handle_data = _private("tensorflow.python.ops.handle_data_util:copy_handle_data")
_gradient_registry = _private(
    "tensorflow.python.framework.ops:gradient_registry", "tensorflow.python.framework.ops:_gradient_registry"
)


def track(parent: Any, name: str, child: Any) -> None:
    """Make `child` a dependency of `parent` under a name, if it can be one. `Trackable._track_trackable` is in 2.4-2.21."""
    if isinstance(child, Trackable):
        parent._track_trackable(child, name, overwrite=True)


def may_record() -> bool:
    """True while a `tf.GradientTape` or `tf.autodiff.ForwardAccumulator` could be watching what is executed."""
    return not _tape_set_is_empty()


def register_function(function_def: Any) -> None:
    """Make a FunctionDef (ours) known to the eager runtime, under its own name.

    Public API only registers what it traced. `context().add_function_def` is in 2.12-2.21.

    Raises:
      tf.errors.InvalidArgumentError: another function of that name is there already.
    """
    _context().add_function_def(function_def)


def remove_function(name: str) -> None:
    """Undo `register_function`. `context().remove_function` is in 2.12-2.21."""
    _context().remove_function(name)


def function_call_config() -> bytes:
    """The ConfigProto with which tf.function calls its functions, so that ours are optimised alike. In 2.12-2.21."""
    return _context().function_call_options.config_proto_serialized


@functools.cache
def op_def(op: str) -> Optional[Any]:
    """The OpDef (ours) of an op of the running TensorFlow, or None.

    The file's own list leaves out ops that are reached through control flow only. The registry is at this place in 2.4-2.21.
    """
    found = _op_def(op)
    return None if found is None else schema.parse(schema.OpDef, found.SerializeToString())


def copy_handle_data(source: tf.Tensor, target: tf.Tensor) -> None:
    """Tell the shape and dtype behind a resource or variant tensor to the gradient code. In 2.4-2.21."""
    _copy_handle_data(source, target)


def gradient_function(op_type: str) -> Optional[Any]:
    """The Python gradient registered under `op_type`, or None. `tf.RegisterGradient` only registers. In 2.12-2.21."""
    try:
        return _gradient_registry.lookup(op_type)
    except LookupError:
        return None


def call_registered(name: str, tensors: Sequence[tf.Tensor], results: int) -> Sequence[tf.Tensor]:
    """Execute a registered function eagerly, as an op of its own name.

    tf.raw_ops.StatefulPartitionedCall would wrap it in another function, whose placement refuses int32 results of some ops
    and whose results XLA does not compile. `execute` is in 2.4-2.21.
    """
    attrs = ("executor_type", "", "config_proto", function_call_config())
    return _execute(name, results, list(tensors), attrs, _context()) or ()


def call_flat(function: Any, tensors: Sequence[tf.Tensor], captures: Sequence[tf.Tensor]) -> Any:
    """Call a concrete function with its inputs in order. The public call would bind and check arguments a second time.

    `ConcreteFunction._call_flat` is in 2.12-2.21.
    """
    return ConcreteFunction._call_flat(function, list(tensors), list(captures))


def to_tf(message: Any, kind: Any) -> Any:
    """One of our messages as a message of TensorFlow's class `kind`."""
    return kind.FromString(message.SerializeToString())


def from_tf(message: Any, kind: Any) -> Any:
    """A message of TensorFlow as one of ours."""
    return schema.parse(kind, message.SerializeToString())


# TypeSpecs: a class takes apart and puts together its own state by _serialize and _deserialize (2.4-2.21); names of classes are
# in a registry without public lookup (framework.type_spec_registry since 2.12 or before).
VariableSpec = _private("tensorflow.python.ops.resource_variable_ops:VariableSpec")
ExtensionTypeSpec = _private("tensorflow.python.framework.extension_type:ExtensionTypeSpec")
_lookup_type_spec = _private("tensorflow.python.framework.type_spec_registry:lookup")
_type_spec_name = _private("tensorflow.python.framework.type_spec_registry:get_name")


def registered_type_spec(name: str) -> Optional[Any]:
    """The TypeSpec class registered under a name, or None."""
    try:
        return _lookup_type_spec(name)
    except ValueError:
        return None


def type_spec_name(cls: type) -> Optional[str]:
    """The name under which a TypeSpec class is registered, or None."""
    try:
        return _type_spec_name(cls)
    except ValueError:
        return None


def deserialize_type_spec(cls: Any, state: Any) -> tf.TypeSpec:
    return cls._deserialize(state)


def serialize_type_spec(spec: tf.TypeSpec) -> Any:
    return spec._serialize()
