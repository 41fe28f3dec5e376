"""Describe a concrete function for an export: the location of its FunctionDef, its captures, its
calling convention.

Traced functions, functions loaded by us or by TensorFlow, and wrappers of signatures all become a
`Trace`.

RFC: FN-05, FMT-03
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SaveError
from reference_impl.format import schema
from reference_impl.functions import binding, specs
from reference_impl.functions.argument_keys import argument_key
from reference_impl.functions.function_settings import signature_with
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import ExportName, FileName, LiveName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph.argument_names import result_name
from reference_impl.graph.function_builder import USER_NAME
from reference_impl.graph.node_attributes import argument_attributes, text_of


def is_function(obj: object) -> bool:
    """Return whether an object is a `tf.function` or a concrete function."""
    return isinstance(obj, (api.Function, api.ConcreteFunction))


@dataclass(frozen=True, eq=False)
class Trace:
    """One concrete function.

    Attributes:
      source, name: where its FunctionDef is.
      captures: the tensors or objects of the tree that its last arguments represent.
      structure: returns ``((args), {kwargs})`` of TypeSpecs and literals, and the results, of
        TypeSpecs.
      keywords: names of the flat arguments.
      positional: how many of the flat arguments may be positional.
      signature: the Python signature; None if the function takes only flat arguments.
      saved: the SavedConcreteFunction that it was read from, if any.
      traced: the concrete function of TensorFlow, if the FunctionDef is in the eager runtime.
      flat: whether it has no structure, so that `structure` returns its flat arguments as
        positional arguments.
    """

    source: Optional[FunctionLibrary]
    name: Union[FileName, LiveName]
    captures: Sequence[Any]
    structure: Callable[[], tuple[Any, Any]]
    keywords: Sequence[str] = ()
    positional: int = 0
    signature: Optional[inspect.Signature] = None
    saved: Optional[schema.SavedConcreteFunction] = None
    traced: Any = None
    flat: bool = False

    @property
    def inputs(self) -> Any:
        """``((args), {kwargs})``"""
        return self._structured[0]

    @property
    def outputs(self) -> Any:
        """The results."""
        return self._structured[1]

    @functools.cached_property
    def _structured(self) -> tuple[Any, Any]:
        return self.structure()


def trace_of(function: tf.types.experimental.ConcreteFunction) -> Trace:
    """Return the Trace of a concrete function."""
    keywords, positional = api.flat_arguments(function)
    if isinstance(function, RegisteredFunction):
        binder = function.binder
        signature = binder.signature if binder is not None else None
        if not keywords:
            keywords = _argument_names(
                function.library.get(function.saved_name), len(function.owners)
            )
            if (
                signature is None and function.structured[0][0]
            ):  # made by loading, not a signature: called with structures
                signature = signature_with(
                    f"arg_{i}" for i in range(len(function.structured[0][0]))
                )
        owners, saved = function.living_owners(), function.saved
        return Trace(
            function.library,
            function.saved_name,
            owners,
            lambda: function.structured,
            keywords,
            positional,
            signature,
            saved,
        )
    api.make_known(function)
    flat = function.structured_input_signature is None
    signature = None if flat else api.python_signature(function)
    name = LiveName(function.function_def.signature.name)
    # before 2.13, TensorFlow names arguments only for functions that `get_concrete_function`
    # returned
    if not keywords:
        keywords = _argument_names(
            api.from_tf(function.function_def, schema.FunctionDef), len(function.captured_inputs)
        )
        positional = len(keywords)
    captures = list(function.captured_inputs)
    structure = functools.partial(_traced, function)
    return Trace(
        None, name, captures, structure, keywords, positional, signature, traced=function, flat=flat
    )


def _traced(function: tf.types.experimental.ConcreteFunction) -> tuple[Any, Any]:
    return api.traced_arguments(function), tf.nest.map_structure(_spec, function.structured_outputs)


def _argument_names(definition: schema.FunctionDef, captures: int) -> list[str]:
    """Return the names of the flat arguments in a FunctionDef."""
    names = []
    for index, argument in enumerate(
        definition.signature.input_arg[: len(definition.signature.input_arg) - captures]
    ):
        given = text_of(argument_attributes(definition, index), USER_NAME)
        names.append(given if given and given not in names else argument.name)
    return names


def _spec(value: object) -> Any:
    if isinstance(value, tf.TypeSpec):
        return value
    if isinstance(value, tf.Tensor):
        return tf.TensorSpec(value.shape, value.dtype)
    return tf.type_spec_from_value(value) if value is not None else None


def flat_outputs(outputs: object) -> list[tf.TensorSpec]:
    """Return one TensorSpec per result of the FunctionDef."""
    return [
        leaf
        for leaf in tf.nest.flatten(outputs, expand_composites=True)
        if isinstance(leaf, tf.TensorSpec)
    ]


def unserialisable(function: object) -> dict[str, str]:
    """Return the arguments of a trace whose value cannot be stored, with the reason.

    RFC: FN-09, PY-06, PY-07
    """
    if isinstance(function, RegisteredFunction):
        return {}
    try:
        args, kwargs = api.traced_arguments(function)
    except SavedModelError:
        return {}
    return _reasons(args, kwargs, api.python_signature(function))


def _reasons(
    args: Sequence[Any], kwargs: Mapping[str, Any], signature: Optional[inspect.Signature]
) -> dict[str, str]:
    names = list(signature.parameters) if signature is not None else []
    named = [(names[i] if i < len(names) else str(i), value) for i, value in enumerate(args)]
    reasons = {name: _unserialisable(value) for name, value in [*named, *kwargs.items()]}
    return {name: reason for name, reason in reasons.items() if reason}


def _unserialisable(value: object) -> str:
    if any(api.is_unknown_argument(leaf) for leaf in tf.nest.flatten(value)):
        return (
            "an object whose value TensorFlow did not keep (that of a tf.TensorShape is kept since"
            " 2.15, while it exists)"
        )
    try:
        specs.to_message(value)
    except SavedModelError as error:
        return error.reason
    return ""


def write_bare(
    out: schema.SavedBareConcreteFunction, trace: Trace, name: ExportName, path: str
) -> None:
    """Write a concrete function that is itself an object of the tree as a
    SavedBareConcreteFunction.

    `name` is the name of its FunctionDef in the export; `path` is its Python path, for messages.
    """
    out.concrete_function_name = name
    out.argument_keywords.extend(trace.keywords)
    out.allowed_positional_arguments = trace.positional
    if trace.signature is not None:
        binding.write(out.function_spec, _with_defaults(trace), _declared(trace), None, path)


def _declared(trace: Trace) -> Any:
    """Return the input signature of a traced function of plain tensors.

    TensorFlow before 2.14 needs one to convert arguments.
    """
    if (
        trace.source is not None
        or trace.inputs[1]
        or not all(isinstance(spec, tf.TensorSpec) for spec in trace.inputs[0])
    ):
        return None
    return specs.to_message(
        tuple(tf.TensorSpec(spec.shape, spec.dtype) for spec in trace.inputs[0])
    )


def _with_defaults(trace: Trace) -> inspect.Signature:
    """Return the signature without placeholders for unknown default values: an `object()` before
    TensorFlow 2.14.
    """
    assert trace.signature is not None
    parameters = list(trace.signature.parameters.values())
    unknown = [
        p
        for p in parameters
        if type(p.default) is object or type(p.default).__name__ == "CapturedDefaultValue"
    ]
    if not unknown:
        return trace.signature
    known = [p.replace(default=p.empty) if p in unknown else p for p in parameters]
    return trace.signature.replace(parameters=known)


def distinct_traces(functions: Sequence[Any]) -> list[Any]:
    """Return the traces of a function, only the last one of those with the same arguments.

    If a function makes its variables, its first trace has the code that makes them.

    RFC: METH-01
    """
    if len(functions) < 2:
        return list(functions)
    return list(
        {argument_key(function) or id(function): function for function in functions}.values()
    )


def saved_concrete(trace: Trace, bound: Sequence[int], path: str) -> Any:
    """Return the SavedConcreteFunction. Raises SaveError: an argument or result cannot be stored.

    RFC: FN-09
    """
    if trace.saved is not None:
        out = schema.copy_of(trace.saved)  # types that are not known here included
        out.bound_inputs[:] = bound
        return out
    out = schema.SavedConcreteFunction(bound_inputs=bound)
    try:
        out.canonicalized_input_signature.CopyFrom(
            specs.encode(None if trace.flat else trace.inputs, path, "arguments")
        )
    except SaveError:
        for name, reason in _reasons(trace.inputs[0], trace.inputs[1], trace.signature).items():
            text = f"the value of argument {name!r} cannot be stored: {reason}"
            raise SaveError(text, node=path, clause="FN-09") from None
        raise
    out.output_signature.CopyFrom(specs.encode(_named(trace.outputs), path, "results"))
    return out


def _named(value: object, path: tuple[Any, ...] = ()) -> Any:
    """Return the results of a trace, with the names that TensorFlow gives to their TensorSpecs.

    RFC: FMT-05
    """
    if isinstance(value, tf.TensorSpec) and value.name is None:
        return tf.TensorSpec(value.shape, value.dtype, result_name(path))
    if isinstance(value, Mapping):
        return {key: _named(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        keys = getattr(value, "_fields", range(len(value)))
        items = [_named(item, (*path, key)) for key, item in zip(keys, value)]
        return (
            type(value)._make(items)
            if hasattr(value, "_make")
            else items
            if isinstance(value, list)
            else tuple(items)
        )
    return value


def is_flat(trace: Trace) -> bool:
    """Return whether it is called like a signature: it takes tensors by keyword and returns a dict
    of tensors or composites.
    """
    args, kwargs = trace.inputs
    plain = not args and all(isinstance(spec, tf.TensorSpec) for spec in kwargs.values())
    return (
        plain
        and isinstance(trace.outputs, Mapping)
        and all(isinstance(spec, tf.TypeSpec) for spec in trace.outputs.values())
    )
