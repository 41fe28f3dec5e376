"""The settings with which `tf.function` traces a rebuilt function: the attributes of its
FunctionDef, and the names of its arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema

# Attributes of a FunctionDef that callers of tf.function can set and the runtime reads.
SETTABLE_ATTRIBUTES = (
    "_implements", "_noinline", "_tf_data_function", "api_implements", "api_preferred_device",
    "disable_summaries_at_runtime", "experimental_ints_on_device", "function_runs_at_most_once",
    "go_backwards", "runtime_constant_optimization", "time_major",
)  # fmt: skip


def as_tf_function(
    function_def: schema.FunctionDef, body: Callable[..., Any]
) -> tf.types.experimental.GenericFunction:
    """Return a tf.function that runs `body` and has the attributes of a FunctionDef."""
    attrs = function_def.attr
    jit_compile = attrs["_XlaMustCompile"].b if "_XlaMustCompile" in attrs else None
    kept = {
        key: api.to_tf(attrs[key], tf.compat.v1.AttrValue)
        for key in SETTABLE_ATTRIBUTES
        if key in attrs and _settable(key)
    }
    settings = {"experimental_attributes": kept} if kept else {}
    return tf.function(body, autograph=False, jit_compile=jit_compile, **settings)


@functools.cache
def _settable(attribute: str) -> bool:
    """Return whether tf.function of this TensorFlow takes an attribute."""
    try:
        tf.function(lambda: None, experimental_attributes={attribute: True})
    except ValueError:
        return False
    return True


def signature_with(names: Iterable[str]) -> inspect.Signature:
    """Return the Python signature with arguments of these names."""
    return inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
