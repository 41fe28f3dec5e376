"""Read the current values of variables and tensors: directly in eager mode, in a session for a
`tf.Graph`.

RFC: COMPAT-01
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.names import VALUE

_USE = "`with graph.as_default(), session.as_default(): reference_impl.save(...)`"


def eager_tensor(value: object) -> bool:
    """Return whether a value is an eager tensor, whose numbers a file can hold as a constant.

    Not by `tf.is_tensor`: it is true of whatever can stand for a tensor (a
    `tfp.util.TransformedVariable`, any class with `is_tensor_like`), which may be an object with
    variables of its own.
    """
    return isinstance(value, tf.Tensor) and hasattr(value, "numpy")


def of_variable(variable: tf.Variable, parts: Sequence[Any], path: str) -> Any:
    """Return the array of an eager variable; `parts` are the plain variables behind it.

    Raises SaveError if it has no value, or none that can be read.
    """
    try:
        return of_tensor((variable if len(parts) > 1 else parts[0]).read_value())
    except tf.errors.FailedPreconditionError as error:
        raise SaveError("the variable has no value", node=path) from error
    except (
        Exception
    ) as error:  # of a class of its own, which may still give its value to a checkpoint
        return _checkpointed(variable, path, error)


def _checkpointed(variable: tf.Variable, path: str, unread: Exception) -> Any:
    """Return the array that a variable, which cannot be read (`unread`), gives to a checkpoint.

    Raises SaveError: it gives none, or one of another dtype, which nobody could load as this
    variable.
    """
    try:
        tensor = api.checkpointed(variable)[VALUE][VALUE]
        if tensor.dtype == variable.dtype:
            return of_tensor(tensor)
        reason = f"it gives {tensor.dtype.name} to a checkpoint"
    except Exception as error:  # the hook is code of users
        reason = (
            f"its checkpoint hook does not give one either: {str(error) or type(error).__name__}"
        )
    read = str(unread) or type(unread).__name__
    said = (
        f"the value of the {variable.dtype.name} variable, a {type(variable).__name__}, cannot be"
        f" read: {read}; {reason}"
    )
    raise SaveError(said, node=path, clause="RP-03") from unread


def of_tensor(tensor: tf.Tensor) -> Any:
    """Return the value of an eager tensor: an array that shares its memory, or a scalar.


    `Tensor.numpy` copies, which costs more than the write of large weights
    (docs/evidence/benchmarks.md, "save, sync=False"). The shared memory does not change:
    TensorFlow gives a variable new memory when it is assigned while another tensor holds the old
    memory.
    """
    tensor = api.whole(tensor)
    return np.asarray(tensor) if tensor.shape.rank else tensor.numpy()


def has_value(parts: Sequence[Any]) -> bool:
    """Return whether an eager variable, of these plain variables, has a value.

    Reading one without a value may give an empty array.
    """
    return all(bool(part.is_initialized()) for part in parts)


def in_graph(parts: Sequence[Any]) -> bool:
    """Return whether a variable, of these plain variables, is in a `tf.Graph`."""
    return not eager_tensor(parts[0].handle)


def byte_size(array: object) -> int:
    """Return the size of the elements of an array in bytes."""
    array = np.asarray(array)
    return array.nbytes if array.dtype != object else sum(len(item) for item in array.flat)


def of_tensors(tensors: Sequence[tf.Tensor], path: str) -> list[Any]:
    """Return the arrays of tensors of the object at `path`. Raises SaveError; see `run`."""
    if all(map(eager_tensor, tensors)):
        return [of_tensor(tensor) for tensor in tensors]
    return run({path: tensors})[path]


def run(fetches: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return path of an object -> the arrays of its graph tensors or variables, fetched in one
    session run.

    Raises:
      SaveError: there is no session, it belongs to another graph, or a variable has not been
        initialised in it.
    """
    if not fetches:
        return {}
    first, session = next(iter(fetches)), tf.compat.v1.get_default_session()
    if session is None:
        reason = (
            "its value is in a session of the graph that it belongs to, and no session is the"
            f" default one. Save {_USE}"
        )
        raise SaveError(reason, node=first, clause="COMPAT-01")
    for path, items in fetches.items():
        if any(item.graph is not session.graph for item in items):
            reason = (
                f"it belongs to another graph than the default session. Save {_USE}, with the"
                " session of its own graph"
            )
            raise SaveError(reason, node=path, clause="COMPAT-01")
    try:
        return dict(session.run({path: list(items) for path, items in fetches.items()}))
    except tf.errors.FailedPreconditionError as error:
        empty = [path for path, items in fetches.items() if not _runs(session, items)]
        reason = (
            f"no value in the session: {', '.join(empty)}. Run"
            " tf.compat.v1.global_variables_initializer() and "
        )
        reason += "tf.compat.v1.tables_initializer() in it first, or restore a checkpoint"
        raise SaveError(reason, node=empty[0] if empty else first, clause="COMPAT-01") from error


def _runs(session: tf.compat.v1.Session, items: Sequence[Any]) -> bool:
    try:
        session.run(list(items))
    except tf.errors.FailedPreconditionError:
        return False
    return True
