"""Errors of Keras without what it adds to them: the call, its arguments, advice to the author of the layer."""

from __future__ import annotations

_ADDED = ("Exception encountered when calling", "Could not automatically infer the output shape")


def original(error: BaseException) -> BaseException:
    """Return the error that Keras copied, with a longer message, into this one."""
    while error.__context__ is not None and any(text in str(error)[:100] for text in _ADDED):
        error = error.__context__
    return error
