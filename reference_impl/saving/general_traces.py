"""Traces for other numbers: copies of traces that take tensors in place of Python numbers.

RFC: PY-02
"""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.functions.argument_keys import same_arguments
from reference_impl.kinds.function import LoadedFunction
from reference_impl.saving import traces


def traces_with_tensors(function: tf.types.experimental.GenericFunction, path: str) -> list[Any]:
    """Trace a copy of a `tf.function` for each call with Python numbers, with tensors in their
    place.

    A number is a constant of its trace. A loaded function accepts another number only if it has a
    trace that takes a tensor, which must be made while the Python code exists. Floats become
    float32 scalars, integers int32 or int64 ones. Traces whose arguments match an existing one are
    left out. The warning about code that does not accept tensors names `path`.

    RFC: PY-02
    """
    if isinstance(function, LoadedFunction) or function.input_signature is not None:
        return []
    known, copy = api.traces(function), api.untraced_copy(function)
    made: list[Any] = []
    for trace in known:
        if traces.unserialisable(trace):
            continue
        given = api.traced_arguments(trace)
        args, kwargs = tf.nest.map_structure(_general, given)
        if any(
            spec is not value
            for spec, value in zip(tf.nest.flatten((args, kwargs)), tf.nest.flatten(given))
        ):
            try:
                general = copy.get_concrete_function(*args, **kwargs)
            except Exception as error:  # it is the user's code that runs
                reason = (
                    f"{type(error).__name__}:"
                    f" {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
                )
                warnings.warn(
                    f"{path}: cannot be traced with tensors in place of numbers: {reason}",
                    stacklevel=2,
                )
            else:
                if not any(same_arguments(general, other) for other in [*known, *made]):
                    made.append(general)
    return made


def _general(value: object) -> Any:
    if isinstance(value, float):
        return tf.TensorSpec([], tf.float32)
    if isinstance(value, int) and not isinstance(value, bool):
        return tf.TensorSpec([], tf.int32 if -(2**31) <= value < 2**31 else tf.int64)
    return value
