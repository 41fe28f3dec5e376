"""Add traces that take tensors for functions that were called with Python numbers.

A number is a constant of its trace. A loaded function accepts another number only if it has a trace that takes a tensor instead,
which must be made while the Python code exists. Every reader then converts the number. A copy of the function is traced, so the
user's own function is not changed.

RFC: PY-02
"""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.kinds import traces
from reference_impl.kinds.function import LoadedFunction


def traces_with_tensors(function: Any, path: str) -> list[Any]:
    """Trace a copy of a `tf.function` for each call with numbers: floats become float32 scalars, integers int32 or int64 ones.

    A loaded function has no Python code and gets no traces. The warning about code that does not accept tensors names `path`.

    Returns:
      The concrete functions, without those whose arguments match an existing trace.
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
        if any(spec is not value for spec, value in zip(tf.nest.flatten((args, kwargs)), tf.nest.flatten(given))):
            try:
                general = copy.get_concrete_function(*args, **kwargs)
            except Exception as error:  # it is the user's code that runs
                reason = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
                warnings.warn(f"{path}: cannot be traced with tensors in place of numbers [PY-02]: {reason}", stacklevel=2)
            else:
                if not any(traces.same_signature(general, other) for other in [*known, *made]):
                    made.append(general)
    return made


def _general(value: Any) -> Any:
    if isinstance(value, float):
        return tf.TensorSpec([], tf.float32)
    if isinstance(value, int) and not isinstance(value, bool):
        return tf.TensorSpec([], tf.int32 if -(2**31) <= value < 2**31 else tf.int64)
    return value
