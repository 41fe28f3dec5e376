"""Python signatures of functions: a FunctionSpec in the file, and the canonical form of a call.

Traces are compared with the canonical form. It has every argument that may be positional in a
tuple, all others in a dict, and the defaults filled in, so ``f(x)``, ``f(x=x)`` and ``f(x,
training=False)`` have the same form.

RFC: PY-01, PY-09, FMT-03
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import BindingError, DtypeError, MalformedError, SavedModelError
from reference_impl.format import schema
from reference_impl.format.values import structure, tensor_proto
from reference_impl.functions import specs
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.patterns import short_repr
from reference_impl.graph.unique_names import repeated

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# The fields of a FullArgSpec and the types of their values; each value may be None.
_FIELDS: dict[str, tuple[type, ...]] = {
    "args": (list, tuple),
    "varargs": (str,),
    "varkw": (str,),
    "defaults": (tuple, list),
    "kwonlyargs": (list, tuple),
    "kwonlydefaults": (dict,),
}


@dataclass
class Binder:
    """The Python signature of a loaded function. `name` and `file` are for messages."""

    name: str
    file: str
    signature: inspect.Signature
    input_signature: Optional[Any] = (
        None  # the specs given to tf.function, a StructuredValue; None if there are none
    )
    jit_compile: Optional[bool] = None

    def __post_init__(self) -> None:
        kinds = [parameter.kind for parameter in self.signature.parameters.values()]
        self._only_positional = len(kinds) if all(kind in _POSITIONAL for kind in kinds) else -1
        keywords = all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds)
        self._only_keywords = (
            self.signature.parameters.keys() if keywords else None
        )  # binding takes half of a call's Python

    def canonical(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the canonical form of a call.

        Raises BindingError: an argument is missing, unknown or given twice; the message names it.
        """
        if self.takes_as_given(args, kwargs):
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            texts = short_repr(args, 300), short_repr(kwargs, 300)
            given = f"args: {texts[0]} and kwargs: {texts[1]} for signature: "
            given += f"{self.name}{self.signature}"
            reason = f"Binding inputs to tf.function failed due to `{error}`. Received {given}"
            raise BindingError(reason, node=self.name) from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def takes_as_given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether arguments are in their canonical form for sure: all of them positional,
        or all given by name.
        """
        if not kwargs and len(args) == self._only_positional:
            return True
        return not args and kwargs.keys() == self._only_keywords

    def without_defaults(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return canonical arguments as early releases (at least 2.4) stored them: only arguments
        that the declared specs cover.

        Trailing arguments with their default values are left out.

        RFC: FMT-03
        """
        parameters = [p for p in self.signature.parameters.values() if p.kind in _POSITIONAL]
        end = len(args)
        while 0 < end <= len(parameters) and _same(args[end - 1], parameters[end - 1].default):
            end -= 1
        return args[:end]


def _same(value: object, default: object) -> bool:
    plain = isinstance(value, (bool, int, float, str, bytes))
    return value is default or (plain and type(value) is type(default) and bool(value == default))


class UnknownDefault:
    """The default of an argument whose type is not known here. No trace matches it."""

    def __init__(self, reason: SavedModelError):
        self.reason = reason

    def __repr__(self) -> str:
        return f"<unknown: {self.reason}>"


def read(load: LoadContext, spec: schema.FunctionSpec, name: str) -> Binder:
    """Return the Python signature in a FunctionSpec.

    Functions of one load with equal signatures share one object, unless they have default values.

    Raises:
      StructureError, MalformedError: the FunctionSpec is damaged.
      LimitError: default values take much more memory than space in the file.

    RFC: FMT-03
    """
    # Equal messages may have different bytes, if they hold maps. Then there are two equal objects.
    key = spec.is_method, spec.fullargspec.SerializeToString()
    signature = load.python_signatures.get(key)
    if signature is None:
        fields = _fields_of(load, spec, name)
        signature = _signature(fields, spec.is_method)
        if not fields.get("defaults") and not fields.get("kwonlydefaults"):
            load.python_signatures[key] = signature
    declared = spec.HasField("input_signature") and not spec.input_signature.HasField("none_value")
    return Binder(
        name,
        load.file,
        signature,
        spec.input_signature if declared else None,
        {schema.FunctionSpec.ON: True, schema.FunctionSpec.OFF: False}.get(spec.jit_compile),
    )


def _fields_of(load: LoadContext, spec: schema.FunctionSpec, name: str) -> dict[str, Any]:
    """Return the fields of the FullArgSpec that are not None, checked."""
    file = load.file
    stored = (
        structure.decode(spec.fullargspec, file, name) if spec.HasField("fullargspec") else None
    )
    if not isinstance(stored, structure.NamedTuple):
        raise MalformedError("a FunctionSpec without FullArgSpec", file=file, node=name)
    fields = {key: value for key, value in stored.fields if value is not None}
    if fields.get("defaults") or fields.get("kwonlydefaults"):
        _count(load, spec.fullargspec)
    for key, kinds in _FIELDS.items():
        names = fields.get(key, ()) if key in ("args", "kwonlyargs") else ()
        if not isinstance(fields.get(key, kinds[0]()), kinds) or not all(
            isinstance(each, str) for each in names
        ):
            raise MalformedError(
                f"the field {key!r} of the FullArgSpec is {short_repr(fields[key])}",
                file=file,
                node=name,
            )
    rest = [fields[key] for key in ("varargs", "varkw") if key in fields]
    for parameter in repeated([*fields.get("args", ()), *fields.get("kwonlyargs", ()), *rest]):
        raise MalformedError(
            f"the FullArgSpec has the parameter {parameter!r} twice", file=file, node=name
        )
    return fields


def _signature(fields: dict[str, Any], is_method: bool) -> inspect.Signature:
    """Return the signature that the fields of a FullArgSpec describe."""
    fullargspec = inspect.FullArgSpec(
        args=list(fields.get("args", ())),
        varargs=fields.get("varargs"),
        varkw=fields.get("varkw"),
        defaults=tuple(_default(value) for value in fields.get("defaults", ())),
        kwonlyargs=list(fields.get("kwonlyargs", ())),
        kwonlydefaults={
            key: _default(value) for key, value in fields.get("kwonlydefaults", {}).items()
        },
        annotations={},
    )
    return api.signature_of_fullargspec(fullargspec, is_method)


def _count(load: LoadContext, values: schema.StructuredValue) -> None:
    """Count the memory of the tensors among default values."""
    for value in structure.nested_values(values):
        kind = value.WhichOneof("kind")
        if kind in ("tensor_value", "numpy_value"):
            with contextlib.suppress(MalformedError, DtypeError):  # the default is unknown then
                load.count(tensor_proto.extra_bytes(getattr(value, kind)))


def _default(value: object) -> Any:
    try:
        return specs.to_tf(value)
    except SavedModelError as error:
        return UnknownDefault(error)


def _stored(parameters: Sequence[inspect.Parameter], path: str) -> schema.StructuredValue:
    """Return the FullArgSpec of parameters. Raises what `write` raises."""
    kinds = inspect.Parameter
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    keyword = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY]
    names = {p.kind: p.name for p in parameters}
    first = next(
        (i for i, p in enumerate(positional) if p.default is not kinds.empty), len(positional)
    )
    defaults = tuple(None if p.default is kinds.empty else p.default for p in positional[first:])
    fields = {
        "args": [p.name for p in positional],
        "varargs": names.get(kinds.VAR_POSITIONAL),
        "varkw": names.get(kinds.VAR_KEYWORD),
        "defaults": defaults or None,
        "kwonlyargs": [p.name for p in keyword],
        "kwonlydefaults": (
            {p.name: p.default for p in keyword if p.default is not kinds.empty} or None
        ),
        "annotations": {},
    }
    try:
        return specs.to_message(structure.NamedTuple("FullArgSpec", tuple(fields.items())))
    except SavedModelError:
        for key, value in fields.items():
            specs.encode(value, path, key)  # the error names the field
        raise


@functools.lru_cache(maxsize=1 << 10)
def _names_stored(parameters: tuple[inspect.Parameter, ...]) -> schema.StructuredValue:
    """Return the FullArgSpec of parameters without default values, which many functions share."""
    return _stored(parameters, "")


def write(
    out: schema.FunctionSpec,
    signature: Optional[inspect.Signature],
    input_signature: Optional[schema.StructuredValue],
    jit_compile: Optional[bool],
    path: str,
) -> None:
    """Write a Python signature, or that of a function without one, as a FunctionSpec.

    Raises SaveError: a default value of the function with this path cannot be stored.

    RFC: FN-09
    """
    parameters = tuple(signature.parameters.values()) if signature is not None else ()
    empty = inspect.Parameter.empty
    only_names = all(p.default is empty and p.annotation is empty for p in parameters)
    try:
        stored = _names_stored(parameters) if only_names else _stored(parameters, path)
    except SavedModelError:
        stored = _stored(parameters, path)  # raises the error again, with the path
    out.fullargspec.CopyFrom(stored)
    if input_signature is None:
        out.input_signature.none_value.SetInParent()
    else:
        out.input_signature.CopyFrom(input_signature)
    if jit_compile is not None:
        out.jit_compile = schema.FunctionSpec.ON if jit_compile else schema.FunctionSpec.OFF
