"""Why a function of a model does not run here: errors that name op, node and function (RP-07, DR-05).

A model loads whatever its functions contain; what this TensorFlow cannot do is said to those who call it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import BindingError, FunctionMatchError, SavedModelError, UnsupportedModelError
from reference_impl.kinds.library import FunctionLibrary


class UnknownOpError(UnsupportedModelError, tf.errors.NotFoundError):
    """A function uses an op that is not registered. What TensorFlow raises in that case is caught as well."""

    clause = "DR-05"

    def __init__(self, reason: str, *, file: Optional[str] = None, node: Optional[str] = None):
        tf.errors.NotFoundError.__init__(self, None, None, reason)
        UnsupportedModelError.__init__(self, reason, file=file, node=node)


class ArgumentDtypeError(BindingError, tf.errors.InvalidArgumentError):
    """A flat argument has another dtype than the function was traced for; shipped TensorFlow finds out in the runtime."""

    def __init__(self, reason: str, *, node: Optional[str] = None):
        tf.errors.InvalidArgumentError.__init__(self, None, None, reason)
        BindingError.__init__(self, reason, node=node)


class MissingGradientError(SavedModelError, LookupError):
    """A custom gradient is needed that the model does not bring along (FMT-14)."""

    clause = "FMT-14"


def unknown_op(library: FunctionLibrary, node: Any, function: str) -> UnknownOpError:
    """The error for a node whose op is not registered."""
    reason = (
        f"Op type not registered {node.op!r} in TensorFlow {tf.__version__}: node {node.name!r} of function {function!r} "
        "uses it; load the library that brings it (tf.load_op_library, or import its package)"
    )
    return UnknownOpError(reason, file=library.file, node=function)


def why_not_found(library: FunctionLibrary, function: str) -> Optional[UnknownOpError]:
    """The error for the first op that is not registered in a function and those it calls, None if all are."""
    for name in library.closure(function):
        for node in library.get(name).node_def:
            if node.op not in library and api.op_def(node.op) is None:
                return unknown_op(library, node, name)
    return None


def cannot_be_rebuilt(library: FunctionLibrary, node: Any, function: str, error: Exception) -> UnsupportedModelError:
    """The error for a node that this TensorFlow refuses: attributes it does not know, shapes it does not infer."""
    reason = f"{node.op} node {node.name!r} of function {function!r} does not fit TensorFlow {tf.__version__}: {error}"
    return UnsupportedModelError(reason, file=library.file, node=function)


def no_gradient(library: FunctionLibrary, op_type: str, operation: Any) -> MissingGradientError:
    """The error for a custom gradient that nobody has registered."""
    reason = (
        f"the model was saved without the custom gradient {op_type!r} of {operation.type} node {operation.name!r} in function "
        f"{operation.graph.name!r}; register it (tf.RegisterGradient) or save with experimental_custom_gradients"
    )
    return MissingGradientError(reason, file=library.file, node=operation.name)


class InputSignatureError(FunctionMatchError, TypeError):
    """The arguments do not fit the input signature that a function was declared with (PY-09)."""

    clause = "PY-09"


def no_match(
    name: str, functions: Sequence[Any], args: Any, kwargs: Any, reasons: Sequence[str], declared: bool
) -> FunctionMatchError:
    """The error for a call that fits none of the traces: what was given, what there is, and the first difference to each.

    Args:
      name: of the function.
      functions: its traces.
      args, kwargs: the canonical call.
      reasons: for each trace.
      declared: the function has an input signature; then there is one trace, and the error is a TypeError as well.
    """
    got = f"Positional arguments ({len(args)} total): {_lines(args)}\n  Keyword arguments: {kwargs}"
    options = []
    for number, (function, reason) in enumerate(zip(functions, reasons), 1):
        try:
            wanted, keywords = function.structured[0]
            takes = f"Positional arguments ({len(wanted)} total): {_lines(wanted)}\n  Keyword arguments: {keywords}"
        except SavedModelError:  # a type that is not known here; the reason says so
            takes = f"the arguments of {function.saved_name}"
        options.append(f"Option {number}:\n  {takes}\n  does not match: {reason}")
    text = (
        f"Could not find matching concrete function to call loaded from the SavedModel. Got:\n  {got}\n\n"
        f"Expected these arguments to match one of the following {len(functions)} option(s):\n\n" + "\n\n".join(options)
    )
    if declared:
        return InputSignatureError(f"Binding inputs to tf.function failed due to `{reasons[0]}`. {text}", node=name)
    return FunctionMatchError(text, node=name)


def _lines(values: Sequence[Any]) -> str:
    return "".join(f"\n    * {value!r}" for value in values)
