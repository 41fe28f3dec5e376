"""The description of a function in the object graph: its Python signature, the arguments and results of its traces.

RFC: FMT-03, FMT-05
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import MalformedError, SavedModelError, SaveError
from reference_impl.format import schema
from reference_impl.format.values import structure
from reference_impl.kinds import rebuild, specs
from reference_impl.kinds.binding import Binder


def signature_of(saved: Any, function: Any, file: str) -> Callable[[], tuple[Any, Any]]:
    """Return a function that returns ``((args, kwargs), results)`` of a SavedConcreteFunction: nests of TypeSpecs and literals.

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
    """Return ``((args, kwargs), results)`` of a FunctionDef that nothing else describes: all its tensors in their order."""
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
    """Return the Python signature in a FunctionSpec. Raises StructureError, MalformedError.

    RFC: FMT-03
    """
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


def write(out: Any, signature: Optional[inspect.Signature], input_signature: Any, jit_compile: Optional[bool], path: str) -> None:
    """Write a Python signature as a FunctionSpec.

    Args:
      out: the FunctionSpec.
      signature: None for a function that has no Python signature.
      input_signature: in the terms of `reference_impl.format.values.structure`.
      jit_compile: None where the function does not say it.
      path: of the function, for messages.

    Raises:
      SaveError: a default value cannot be stored.

    RFC: FN-09
    """
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values()) if signature is not None else []
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    keyword = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY]
    starred = {p.kind: p.name for p in parameters if p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)}
    first = next((i for i, p in enumerate(positional) if p.default is not kinds.empty), len(positional))
    defaults = tuple(None if p.default is kinds.empty else p.default for p in positional[first:])
    fields = {
        "args": [p.name for p in positional],
        "varargs": starred.get(kinds.VAR_POSITIONAL),
        "varkw": starred.get(kinds.VAR_KEYWORD),
        "defaults": defaults or None,
        "kwonlyargs": [p.name for p in keyword],
        "kwonlydefaults": {p.name: p.default for p in keyword if p.default is not kinds.empty} or None,
        "annotations": {},
    }
    stored = tuple((key, storable(value, path, key)) for key, value in fields.items())
    out.fullargspec.CopyFrom(structure.encode(structure.NamedTuple("FullArgSpec", stored), path))
    out.input_signature.CopyFrom(structure.encode(input_signature, path))
    if jit_compile is not None:
        out.jit_compile = schema.FunctionSpec.ON if jit_compile else schema.FunctionSpec.OFF


def storable(value: Any, path: str, what: str) -> Any:
    """Return a nest of TypeSpecs and literals in the terms of `structure.encode`.

    Args:
      value: the nest.
      path: of the function, for messages.
      what: the nest holds, for messages.

    Raises:
      SaveError: the nest holds a value that cannot be stored.

    RFC: FN-09
    """
    try:
        out = specs.from_tf(value)
        structure.encode(out)
    except SavedModelError as error:
        raise SaveError(f"{what} of the function cannot be stored: {error.reason}", node=path, clause="FN-09") from error
    return out
