"""Gradients of rebuilt operations: custom gradients of the model, and errors for missing ones.

A tape makes the backward function of everything that it watches, whether it is used or not. So the
error for a gradient that does not exist is an op of that function: a call under a tape works, and
the error appears when the gradient is requested.

RFC: FMT-14, V1-11, V1-14
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError
from reference_impl.format.names import (
    CUSTOM_GRADIENT,
    GRADIENT_NOT_SAVED,
    NO_GRADIENT_BECAUSE,
    is_generated_gradient,
)
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName, LiveName

REFUSED = "ReferenceImplNoGradient"  # op type of the gradient; an export leaves it out

# Graph under construction -> {tensor name of an argument ("x:0"): tensor}, for gradients that
# capture the argument. Nodes keep their names.
_arguments_of: weakref.WeakKeyDictionary[tf.Graph, dict[str, tf.Tensor]] = (
    weakref.WeakKeyDictionary()
)


class MissingGradientError(SavedModelError, LookupError):
    """The model lacks a custom gradient that is needed.

    RFC: FMT-14
    """

    clause = "FMT-14"


def note_arguments(graph: tf.Graph, arguments: dict[str, tf.Tensor]) -> None:
    """Record the argument tensors of a function that is built in a graph, by argument name."""
    _arguments_of.setdefault(graph, {}).update(
        (f"{name}:0", tensor) for name, tensor in arguments.items()
    )


def register(library: FunctionLibrary, op_type: FileName) -> LiveName:
    """Register the model's gradient for `op_type` and return its name in this process.

    If the model has no gradient for the type but the program has registered one, the type keeps its
    name. So does the type of refusals, for which tf.saved_model.save writes a gradient that does
    not know the reason. A generated name is never looked up in this process: a gradient that has
    the same number by chance is another one.

    RFC: FMT-14
    """
    if op_type in (REFUSED, GRADIENT_NOT_SAVED):
        return LiveName(op_type)
    brought = op_type in library.index.gradients
    foreign = not brought and not is_generated_gradient(op_type)
    if foreign and api.gradient_function(op_type) is not None:
        return LiveName(op_type)
    live = library.live_name(op_type)
    if api.gradient_function(live) is None:
        of = weakref.ref(library)

        @api.without_autograph
        def gradient(operation: Optional[tf.Operation], *results: Optional[tf.Tensor]) -> Any:
            alive = of()
            if (
                operation is None and alive is not None
            ):  # TensorFlow's writer does not pass the operation
                graph, name = alive.sites.get(live, (lambda: None, ""))
                operation = graph().get_operation_by_name(name) if graph() is not None else None
            if alive is not None and not brought:
                registered = (
                    api.gradient_function(op_type) if foreign else None
                )  # it may be registered by now
                if registered is None:
                    raise _no_gradient(alive, op_type, operation)
                return registered(operation, *results)
            if alive is None or op_type not in alive.custom_gradients:
                raise LookupError(
                    f"the model that brought the gradient {op_type!r} is gone or does not say what"
                    " it captures"
                )
            return _call_gradient(alive.custom_gradients[op_type](alive), operation, results)

        tf.RegisterGradient(live)(gradient)
    return live


def _call_gradient(
    function: tf.types.experimental.ConcreteFunction,
    operation: Optional[tf.Operation],
    results: Sequence[Optional[tf.Tensor]],
) -> Any:
    """Call a gradient function with one gradient per output of the operation, zeros for missing
    ones.
    """
    given = []
    for index, result in enumerate(results):
        given.append(
            tf.zeros_like(operation.outputs[index])
            if result is None and operation is not None
            else result
        )
    tensors = _arguments_of.get(operation.graph, {}) if operation is not None else {}
    return function.call_with_tensors_of(given, operation, tensors)


def _no_gradient(
    library: FunctionLibrary, op_type: str, operation: tf.Operation
) -> MissingGradientError:
    """Return the error for a custom gradient that is not registered."""
    advice = "register it (tf.RegisterGradient) or save with experimental_custom_gradients"
    if is_generated_gradient(op_type):
        advice = (
            "save the model again with reference_impl.save, which keeps the gradients of gradients"
        )
    reason = (
        f"the model was saved without the custom gradient {op_type!r} of {operation.type} node"
        f" {operation.name!r} in function {operation.graph.name!r}; {advice}"
    )
    return MissingGradientError(reason, file=library.file, node=operation.name)


def refusal(reason: str) -> dict[str, Any]:
    """Return attributes that prevent the differentiation of an operation."""
    values = {CUSTOM_GRADIENT: REFUSED, NO_GRADIENT_BECAUSE: reason}
    return {key: tf.compat.v1.AttrValue(s=value.encode()) for key, value in values.items()}


@api.without_autograph
def _refused(operation: Optional[tf.Operation], *given: object) -> Sequence[Optional[tf.Tensor]]:
    """Return a gradient that fails. tf.saved_model.save traces it once for all operations of this
    type, without an operation.
    """
    reason, inputs = "the model does not say why", given
    if operation is not None:
        inputs = operation.inputs
        with contextlib.suppress(ValueError):  # the file may lack the reason
            reason = operation.get_attr(NO_GRADIENT_BECAUSE).decode("utf-8", "replace")
    assertion = tf.raw_ops.Assert(
        condition=tf.constant(False), data=[tf.constant(f"There is no gradient here: {reason}")]
    )
    with tf.control_dependencies([assertion]):
        return [_nothing(tensor) for tensor in inputs]


for _kind in (REFUSED, GRADIENT_NOT_SAVED):
    tf.RegisterGradient(_kind)(_refused)


def _nothing(tensor: tf.Tensor) -> Optional[tf.Tensor]:
    """Return zeros like the tensor or the variable behind it."""
    dtype = api.dtype_of_handle(tensor) if tensor.dtype == tf.resource else tensor.dtype
    if dtype is None or not (dtype.is_floating or dtype.is_complex):
        return None
    shape = (
        tf.raw_ops.VariableShape(input=tensor) if tensor.dtype == tf.resource else tf.shape(tensor)
    )
    return tf.zeros(shape, dtype)
