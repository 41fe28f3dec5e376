"""The eager runtime: its functions, its ops, its tapes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.format.names import IMPLEMENTS
from reference_impl.remembering import found_once
from reference_impl.tensorflow_api.lookup import private, text

_context = private("tensorflow.python.eager.context:context")
# Executes eagerly inside a graph that is being built; `tf.init_scope` only leaves functions. In
# 2.4-2.21.
eager_mode = private("tensorflow.python.eager.context:eager_mode")
_execute = private("tensorflow.python.eager.execute:execute")
# Tells whether a gradient tape or a forward accumulator is active, which no public API does. In
# 2.4-2.21.
_tape_set_is_empty = private("tensorflow.python.pywrap_tfe:TFE_Py_TapeSetIsEmpty")
_op_def = private("tensorflow.python.framework.op_def_registry:get")
_gradient_registry = private("tensorflow.python.framework.ops:gradient_registry")


# The class of eager tensors: `tf.Tensor` has symbolic tensors too. In 2.4-2.21.
EagerTensor = private("tensorflow.python.framework.ops:EagerTensor")


def sizes_of(tensor: tf.Tensor) -> tuple[int, ...]:
    """Return the shape of an eager tensor.

    The public `shape` makes a `tf.TensorShape` of each new tensor. In 2.4-2.21.
    """
    sizes: tuple[int, ...] = tensor._shape_tuple()
    return sizes


def may_record() -> bool:
    """Return whether a `tf.GradientTape` or `tf.autodiff.ForwardAccumulator` is active."""
    return not _tape_set_is_empty()


def register_function(function_def: schema.FunctionDef) -> None:
    """Register a FunctionDef (ours) in the eager runtime, under its own name.

    The public API only registers functions that it traced. `context().add_function_def` is in
    2.12-2.21.
    """
    _context().add_function_def(function_def)


def remove_function(name: str) -> None:
    """Undo `register_function`. `context().remove_function` is in 2.12-2.21."""
    _context().remove_function(name)


def function_definition(name: str) -> Optional[Any]:
    """Return the FunctionDef (ours) that the eager runtime has under a name, or None.

    In 2.4-2.21.
    """
    context = _context()
    if not context.has_function(name):
        return None
    definition = context.get_function_def(name)
    # Sorted maps are read faster: see `format.schema._kept`.
    data = definition.SerializeToString(deterministic=True)
    return schema.parse(schema.FunctionDef, data)


def implementations() -> dict[bytes, list[str]]:
    """Return interface -> names of the eager runtime's functions whose attribute ``api_implements``
    names it, ordered by number.

    Nothing refers to these functions, so they are only in the list of all functions, which is in
    2.4-2.21.
    """
    found: dict[bytes, list[str]] = {}
    context = _context()
    names = [text(name) for name in context.list_function_names()]
    for name in sorted(names, key=lambda name: (int("0" + re.findall(r"\d*\Z", name)[0]), name)):
        attributes = context.get_function_def(name).attr
        if IMPLEMENTS in attributes:
            found.setdefault(attributes[IMPLEMENTS].s, []).append(name)
    return found


def make_known(function: tf.types.experimental.ConcreteFunction) -> None:
    """Register a concrete function and its callees if the eager runtime lacks them.

    TensorFlow 2.12 does not register functions that were traced in graph mode. `Graph._functions`
    and the definitions are in 2.4-2.13.
    """
    pending, context = [function], _context()
    while pending:
        one = pending.pop()
        if not context.has_function(text(one.name)):
            context.add_function_def(getattr(one, "definition", None) or one.function_def)
            pending += one.graph._functions.values()


def call_registered(name: str, tensors: Sequence[tf.Tensor], results: int) -> Sequence[tf.Tensor]:
    """Execute a registered function eagerly, as an op of its own name, optimised as `tf.function`
    does it.

    `tf.raw_ops.StatefulPartitionedCall` would wrap the function in another one, whose placement
    refuses int32 results of some ops and whose results XLA does not compile. `execute` is in
    2.4-2.21, `function_call_options` in 2.12-2.21.

    Raises tf.errors.OpError.
    """
    context = _context()
    attrs = (
        "executor_type",
        "",
        "config_proto",
        context.function_call_options.config_proto_serialized,
    )
    try:
        return _execute(name, results, list(tensors), attrs, context) or ()
    except (
        UnicodeDecodeError
    ) as error:  # the error of an op quotes bytes of the model, which need not be UTF-8
        raise tf.errors.UnknownError(
            None, None, error.object.decode("utf-8", "backslashreplace")
        ) from error


@found_once
def op_def(op: str) -> Optional[Any]:
    """Return the OpDef (ours) of an op of the running TensorFlow, or None.

    A library may register the op later.

    The list of ops in a file leaves out those that only control flow reaches. The registry is at
    this place in 2.4-2.21.
    """
    found = _op_def(op)
    return None if found is None else schema.parse(schema.OpDef, found.SerializeToString())


def op_defs(ops: Iterable[str]) -> dict[str, Any]:
    """Return the OpDefs (ours) of those of several ops that the running TensorFlow has."""
    return op_def.among(ops)


def gradient_function(op_type: str) -> Optional[Any]:
    """Return the Python gradient registered under `op_type`, or None.

    `tf.RegisterGradient` only registers. In 2.12-2.21.
    """
    try:
        return _gradient_registry.lookup(op_type)
    except LookupError:
        return None


def loaded_gradient(op_type: str) -> Optional[str]:
    """Return the name of the function that tf.saved_model.load registered as a gradient, or None
    for any other gradient.

    TensorFlow wraps that function in a Python function and keeps no other record of it. In
    2.12-2.21.
    """
    gradient = gradient_function(op_type)
    if (
        gradient is None
        or getattr(gradient, "__qualname__", "") != "_gen_gradient_func.<locals>.gradient_func"
    ):
        return None
    function = inspect.getclosurevars(gradient).nonlocals.get("func")
    return None if function is None else text(function.name)
