"""What the object graph says of a function: its Python signature, and what its traces take and give (FMT-03, FMT-05)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from reference_impl.errors import MalformedError, SavedModelError
from reference_impl.format import schema
from reference_impl.format.values import structure
from reference_impl.kinds import rebuild, specs
from reference_impl.kinds.binding import Binder


def signature_of(saved: Any, function: Any, file: str) -> Callable[[], tuple[Any, Any]]:
    """A function that gives ``((args, kwargs), results)`` of a SavedConcreteFunction, as nests of TypeSpecs and literals.

    The flat arguments of a function that has no structured ones are given as positional ones.

    Args:
      saved: the SavedConcreteFunction.
      function: its FunctionDef.
      file: named in errors.
    """
    name = function.signature.name

    def decode() -> tuple[Any, Any]:
        inputs = live(saved.canonicalized_input_signature)
        if inputs is None:
            given = max(0, len(function.signature.input_arg) - len(saved.bound_inputs))
            inputs = tuple(rebuild.input_specs(function)[:given]), {}
        if not (isinstance(inputs, tuple) and len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)):
            raise MalformedError("the input signature is not a pair of tuple and dict", file=file, node=name)
        return inputs, live(saved.output_signature)

    def live(message: Any) -> Any:
        try:
            return specs.to_tf(structure.decode(message, file, name))
        except SavedModelError as error:
            error.file, error.node = error.file or file, error.node or name
            raise

    return decode


def flat_signature(function: Any) -> tuple[Any, Any]:
    """``((args, kwargs), results)`` of a FunctionDef that nothing else describes: all its tensors in their order."""
    results = [tf.TensorSpec(None, tf.dtypes.as_dtype(result.type)) for result in function.signature.output_arg]
    return (tuple(rebuild.input_specs(function)), {}), results


class UnknownDefault:
    """Stands for the default of an argument whose type is not known here; no trace matches it."""

    def __init__(self, reason: SavedModelError):
        self.reason = reason

    def __repr__(self) -> str:
        return f"<unknown: {self.reason}>"


def _default(value: Any) -> Any:
    try:
        return specs.to_tf(value)
    except SavedModelError as error:
        return UnknownDefault(error)


def make_binder(name: str, spec: Any, file: str) -> Binder:
    """The Python signature in a FunctionSpec (FMT-03). Raises StructureError, MalformedError."""
    fullargspec = structure.decode(spec.fullargspec, file, name) if spec.HasField("fullargspec") else None
    if not isinstance(fullargspec, structure.NamedTuple):
        raise MalformedError("a FunctionSpec without FullArgSpec", file=file, node=name)
    fields = dict(fullargspec.fields)
    input_signature = None
    if spec.HasField("input_signature") and not spec.input_signature.HasField("none_value"):
        input_signature = functools.partial(structure.decode, spec.input_signature, file, name)
    return Binder(
        name,
        args=fields.get("args") or [],
        varargs=fields.get("varargs"),
        varkw=fields.get("varkw"),
        defaults=[_default(value) for value in fields.get("defaults") or ()],
        kwonlyargs=fields.get("kwonlyargs") or [],
        kwonlydefaults={key: _default(value) for key, value in (fields.get("kwonlydefaults") or {}).items()},
        is_method=spec.is_method,
        input_signature=input_signature,
        jit_compile={schema.FunctionSpec.ON: True, schema.FunctionSpec.OFF: False}.get(spec.jit_compile),
    )
