"""Flat arguments: a call with one tensor per input of the FunctionDef, by the names that the writer
gave to the inputs.

RFC: FN-05, SIG-07
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in.tensorflow_errors import AlsoTensorFlowError
from reference_impl.errors import BindingError
from reference_impl.format.values.shapes import shape_text
from reference_impl.functions.specs import tf_dtype
from reference_impl.graph.argument_names import python_name


class ArgumentDtypeError(AlsoTensorFlowError, BindingError, tf.errors.InvalidArgumentError):
    """A flat argument has another dtype than the trace; shipped TensorFlow reports this only in the
    runtime.
    """


def to_tensors(
    function: tf.types.experimental.ConcreteFunction, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[tf.Tensor]:
    """Return the tensors of a call of a RegisteredFunction with flat arguments, in FunctionDef
    order.

    Raises BindingError: an argument is missing, unknown, given twice or not a tensor of the right
    dtype; the message names it.
    """
    keywords = function.flat_keywords or []
    if len(args) > function.flat_positional:
        most = (
            f"takes {function.flat_positional} positional"
            f" argument{'s' * (function.flat_positional != 1)}"
        )
        raise BindingError(
            f"{most}, got {len(args)}; give them by name ({_takes(function)})", node=function.label
        )
    given = dict(zip(function.flat_order or [], args))
    kwargs = with_file_names(kwargs, [key for key in keywords if key not in given])
    twice = [key for key in given if key in kwargs]
    if twice:
        raise BindingError(
            f"got two values for {', '.join(twice)} ({_takes(function)})", node=function.label
        )
    if {*given, *kwargs} != set(keywords):
        raise BindingError(
            difference_text({*given, *kwargs}, keywords, _takes(function)), node=function.label
        )
    given.update(kwargs)
    arguments = zip(keywords, function.library.get(function.saved_name).signature.input_arg)
    tensors = [
        _flat_tensor(given[key], tf_dtype(item.type, node=key), key, function.label)
        for key, item in arguments
    ]
    for key, tensor, wanted in zip(keywords, tensors, _specs(function)):
        # The shape of a tensor is the business of the runtime, since a session takes tensors of
        # other shapes too.
        if not isinstance(
            given[key], (tf.Tensor, tf.Variable)
        ) and not wanted.shape.is_compatible_with(tensor.shape):
            reason = (
                f"argument {key!r} has the shape {tensor.shape}, not {wanted.shape}"
                f" ({_takes(function)})"
            )
            raise BindingError(reason, node=function.label)
    return tensors


def _specs(function: tf.types.experimental.ConcreteFunction) -> list[tf.TensorSpec]:
    """Return the specs of the flat arguments, or none if the structure does not tell them."""
    keywords = function.flat_keywords or []
    args, kwargs = function.structured[0]
    named = {python_name(key): spec for key, spec in kwargs.items()}
    if not args and all(
        python_name(key) in named for key in keywords
    ):  # old writers had another order than the dict
        specs = [named[python_name(key)] for key in keywords]
    else:
        specs = tf.nest.flatten((args, kwargs), expand_composites=True)
    found = [spec for spec in specs if isinstance(spec, tf.TensorSpec)]
    return found if len(found) == len(keywords) else []


def _takes(function: tf.types.experimental.ConcreteFunction) -> str:
    """Return the flat arguments for a message: ``it takes x: float32[?, 4], y: string[]``."""
    keywords = function.flat_keywords or []
    specs = _specs(function)
    named = (
        [f"{key}: {_spec_text(spec)}" for key, spec in zip(keywords, specs)] if specs else keywords
    )
    return f"it takes {', '.join(named) or 'no arguments'}"


def difference_text(given: Collection[str], wanted: Collection[str], takes: str) -> str:
    """Describe the missing and unknown arguments."""
    missing, unknown = (
        [key for key in wanted if key not in given],
        sorted(key for key in given if key not in wanted),
    )
    parts = []
    if missing:
        parts.append(
            f"argument{'s' * (len(missing) > 1)} {', '.join(missing)}"
            f" {'are' if len(missing) > 1 else 'is'} missing"
        )
    if unknown:
        parts.append(f"there is no argument {', '.join(unknown)}")
    return f"{' and '.join(parts)} ({takes})"


def _spec_text(spec: tf.TensorSpec) -> str:
    sizes = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    return f"{spec.dtype.name}{shape_text(sizes)}".replace(",", ", ")


def with_file_names(kwargs: dict[str, Any], keywords: Collection[str]) -> dict[str, Any]:
    """Return arguments under the names of the file: TensorFlow accepts both the writer's names and
    Python's.

    RFC: SIG-07
    """
    unknown = [name for name in kwargs if name not in keywords]
    if not unknown:
        return kwargs
    free = [key for key in keywords if key not in kwargs]
    names = {}
    for name in unknown:
        keys = [key for key in free if python_name(key) == python_name(name)]
        if len(keys) == 1:
            names[name] = keys[0]
    if len(set(names.values())) < len(names):  # two names for one argument
        return kwargs
    return {names.get(name, name): value for name, value in kwargs.items()}


def _flat_tensor(value: object, dtype: tf.DType, key: str, function: str) -> tf.Tensor:
    if dtype == tf.resource:
        if isinstance(value, tf.Variable):
            api.variable_accessed(value)
        return value.handle if isinstance(value, tf.Variable) else value
    try:
        tensor = tf.convert_to_tensor(value, dtype_hint=dtype)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise BindingError(
            f"argument {key!r} cannot become a {dtype.name} tensor: {error}", node=function
        ) from None
    if tensor.dtype != dtype:
        raise ArgumentDtypeError(
            f"argument {key!r} has dtype {tensor.dtype.name}, not {dtype.name}", node=function
        )
    return tensor
