"""Errors that are also instances of an error class of TensorFlow, which callers of `tf.saved_model`
catch.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Iterator
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl.errors import (
    ChecksumError,
    CorruptTableError,
    FileAccessError,
    SavedModelError,
    TruncatedError,
)

_DENIED = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), tf.errors.PermissionDeniedError)
_NOT_THE_KIND = dict.fromkeys(
    (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY), tf.errors.FailedPreconditionError
)
_FULL = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EMFILE), tf.errors.ResourceExhaustedError)
# The class that TensorFlow raises for an error of the operating system.
_BY_NUMBER = {**_DENIED, **_NOT_THE_KIND, **_FULL, errno.EEXIST: tf.errors.AlreadyExistsError}


class AlsoTensorFlowError(SavedModelError):
    """An error of this package that is also one of TensorFlow.

    A subclass names that class as its last base.
    """

    def __init__(
        self,
        reason: Optional[str],
        op: Optional[tf.Operation] = None,
        message: Optional[str] = None,
        code: Optional[int] = None,
        *,
        file: Optional[Union[str, os.PathLike[str]]] = None,
        node: Optional[str] = None,
    ) -> None:
        # Keras makes a copy of an error of TensorFlow with its node, op, message and code, and adds
        # the layer to the message.
        reason = str(message if reason is None else reason)
        theirs: Any = next(
            base for base in type(self).__mro__ if base.__module__.startswith("tensorflow.")
        )
        theirs.__init__(self, None, None, reason)
        SavedModelError.__init__(self, reason, file=file, node=node)


@contextlib.contextmanager
def about_files() -> Iterator[None]:
    """Raise an error about files as an error of the same name that also derives from the
    class that TensorFlow raises in its place.
    """
    try:
        yield
    except SavedModelError as error:
        theirs = equivalent(error)
        if theirs is None:
            raise
        raise theirs from error


def equivalent(error: SavedModelError) -> Optional[SavedModelError]:
    """Return an error about files as an error of the same name that also derives from the
    class that TensorFlow raises in its place; None for any other error.
    """
    theirs = _theirs(error)
    if not theirs or isinstance(error, tf.errors.OpError):
        return None
    return _with_bases(type(error), theirs, vars(error))


def _theirs(error: SavedModelError) -> tuple[type, ...]:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, tf.errors.OpError):
        return (type(cause),)
    if isinstance(error, (ChecksumError, CorruptTableError)):
        return OSError, tf.errors.DataLossError
    if isinstance(error, TruncatedError):
        return OSError, tf.errors.DataLossError, IndexError
    if isinstance(error, FileNotFoundError):
        return (tf.errors.NotFoundError,)
    if isinstance(error, FileAccessError):
        return (_BY_NUMBER.get(getattr(cause, "errno", None), tf.errors.UnknownError),)
    return ()


def _with_bases(
    kind: object, theirs: tuple[type, ...], attributes: dict[str, Any]
) -> SavedModelError:
    made: SavedModelError = _class(kind, theirs)(attributes)
    return made


@functools.cache
def _class(kind: Any, theirs: tuple[type, ...]) -> Any:
    def __init__(self: Any, attributes: dict[str, Any]) -> None:
        kind.__init__(self, attributes["reason"])
        vars(self).update(attributes)
        operation = next(base for base in theirs if issubclass(base, tf.errors.OpError))
        operation.__init__(self, None, None, str(self))  # type: ignore[misc]
        self.args = (self.reason,)

    def __reduce__(
        self: Any,
    ) -> Any:  # the class has no name under which another process could find it
        return _with_bases, (
            kind,
            theirs,
            {key: value for key, value in vars(self).items() if not key.startswith("_")},
        )

    bases = (kind, *(base for base in theirs if not issubclass(kind, base)))
    return type(
        kind.__name__,
        bases,
        {"__init__": __init__, "__reduce__": __reduce__, "__module__": kind.__module__},
    )
