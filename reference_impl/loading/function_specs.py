"""What the object graph says of a function: its Python signature, and what its traces take and give (FMT-03, FMT-05)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from reference_impl import specs
from reference_impl.format import schema, structure
from reference_impl.format.errors import MalformedError
from reference_impl.loading.binding import Binder


def signature_of(saved: Any, name: str, file: str) -> Callable[[], tuple[Any, Any]]:
    """A function that gives ``((args, kwargs), results)`` of a SavedConcreteFunction, as nests of TypeSpecs and literals."""

    def decode() -> tuple[Any, Any]:
        inputs = specs.to_tf(structure.decode(saved.canonicalized_input_signature, file, name))
        if not (isinstance(inputs, tuple) and len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)):
            raise MalformedError("the input signature is not a pair of tuple and dict", file=file, node=name)
        return inputs, specs.to_tf(structure.decode(saved.output_signature, file, name))

    return decode


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
        defaults=specs.to_tf(tuple(fields.get("defaults") or ())),
        kwonlyargs=fields.get("kwonlyargs") or [],
        kwonlydefaults=specs.to_tf(dict(fields.get("kwonlydefaults") or {})),
        is_method=spec.is_method,
        input_signature=input_signature,
        jit_compile={schema.FunctionSpec.ON: True, schema.FunctionSpec.OFF: False}.get(spec.jit_compile),
    )
