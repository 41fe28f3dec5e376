"""Whether two traced functions take the same arguments: a key that equal arguments share.

For example, the trace of a `tf.function` that makes its variables and the trace of its second call
have one key.
"""

from __future__ import annotations

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.functions.registered_function import RegisteredFunction


def same_arguments(one: object, other: object) -> bool:
    """Return whether two traced functions take the same arguments."""
    key = argument_key(one)
    return bool(key) and key == argument_key(other)


def argument_key(function: object) -> bytes:
    """Return the arguments of a traced function as bytes; none for arguments that no file can
    hold, and for functions that were loaded.
    """
    if isinstance(function, RegisteredFunction):
        return b""
    try:
        return schema.serialize(specs.to_message(api.traced_arguments(function)))
    except SavedModelError:
        return b""
