"""The inputs of a signature: their names, their order and their default values.

RFC: SIG-07, SIG-08, SIG-13, FN-09
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from reference_impl.errors import SignatureError
from reference_impl.graph.argument_names import python_name, python_names
from reference_impl.saving import traces
from reference_impl.saving.traces import Trace


def inputs_of(key: str, trace: Trace, strict: bool) -> dict[str, tf.TensorSpec]:
    (args, kwargs), top = trace.inputs, _arguments(trace)
    for value in top:
        leaves = tf.nest.flatten(value, expand_composites=True)
        if any(
            isinstance(leaf, tf.Variable) or getattr(leaf, "dtype", None) == tf.resource
            for leaf in [value, *leaves]
        ):
            raise SignatureError(
                "a variable cannot be an input of a signature", node=key, clause="SIG-13"
            )
    flat = traces.flat_outputs((args, kwargs))
    if not args and kwargs.keys() == set(trace.keywords):
        # TensorFlow orders those of TF 1.x differently from the dict.
        flat = [kwargs[name] for name in trace.keywords]
    if len(flat) != len(trace.keywords) or len(set(trace.keywords)) != len(flat):
        names = ", ".join(trace.keywords)
        raise SignatureError(
            f"its {len(flat)} input tensors have no names of their own ({names})",
            node=key,
            clause="SIG-07",
        )
    if strict:
        _check_nested(key, trace)
    return _as_python_binds(
        trace,
        {
            name: tf.TensorSpec(spec.shape, spec.dtype, name)
            for name, spec in zip(trace.keywords, flat)
        },
    )


def _arguments(trace: Trace) -> list[Any]:
    """Return the positional arguments of a trace, then its keyword arguments, sorted."""
    args, kwargs = trace.inputs
    return [*args, *(kwargs[name] for name in sorted(kwargs))]


def _check_nested(key: str, trace: Trace) -> None:
    """Raise SignatureError if a tensor in a structure has no name of its own (SIG-13)."""
    for given in numbered(trace):
        reason = (
            "inputs of a signature must be plain tensors, or tensors in a structure that have"
            " different names of their own: a client could not know that"
            f" {', '.join(map(repr, given))} are the parts of one argument. Give each TensorSpec a"
            " name, wrap the function in one that takes tensors, or save with strict=False"
        )
        raise SignatureError(reason, node=key, clause="SIG-13")


def numbered(trace: Trace) -> Iterator[list[str]]:
    """Yield the names of the tensors of each argument that is a structure, unless they have names
    of their own.

    TensorFlow names a tensor in a structure after its TensorSpec, or after the argument with a
    number.
    """
    for value, given in _with_names(_arguments(trace), trace.keywords):
        if isinstance(value, tf.TensorSpec) or not given:
            continue
        own = [leaf.name for leaf in traces.flat_outputs(value)] == given or len(given) == 1
        if isinstance(value, tf.TypeSpec) or not own:
            yield given


def _with_names(arguments: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[Any, list[str]]]:
    """Yield each argument of a trace, and the names of its tensors."""
    left = iter(names)
    for value in arguments:
        yield value, list(itertools.islice(left, len(traces.flat_outputs(value))))


def defaults_of(
    key: str, trace: Trace, signature: inspect.Signature, names: Sequence[str], strict: bool
) -> dict[str, Any]:
    """Return the values of optional inputs.

    `names` are in the order of the function's arguments.
    """
    args, kwargs = trace.inputs
    parameters = [*list(signature.parameters)[: len(args)], *sorted(kwargs)]
    found: dict[str, Any] = {}
    for parameter, (value, given) in zip(parameters, _with_names(_arguments(trace), names)):
        default = (
            signature.parameters[parameter].default
            if parameter in signature.parameters
            else inspect.Parameter.empty
        )
        parts = tf.nest.flatten(default, expand_composites=True)
        if not any(isinstance(part, tf.Tensor) for part in parts):
            continue
        try:
            tf.nest.assert_same_structure(default, value, check_types=False, expand_composites=True)
        except (TypeError, ValueError) as error:
            lost = SignatureError(
                f"the default value of {parameter} has another structure: {error}",
                node=key,
                clause="FN-09",
            )
            if strict:
                raise lost from error
            warnings.warn(f"default values are left out: {lost}", stacklevel=2)
            continue
        leaves = tf.nest.flatten(value, expand_composites=True)
        tensors = [part for part, leaf in zip(parts, leaves) if isinstance(leaf, tf.TensorSpec)]
        found.update(
            (name, part) for name, part in zip(given, tensors) if isinstance(part, tf.Tensor)
        )
    return found


def _as_python_binds(trace: Trace, inputs: dict[str, tf.TensorSpec]) -> dict[str, tf.TensorSpec]:
    """Return the inputs in the order of the function's arguments, bound as TensorFlow binds them.

    A concrete function treats keywords as parameters of its Python function if they fit, otherwise
    as names of its tensors. The order differs if a TensorSpec has the name of another parameter.
    """
    if trace.signature is None:
        return inputs
    specs = _arguments(trace)
    try:
        parameters = [
            p.replace(default=p.empty) for p in trace.signature.parameters.values()
        ]  # a trace has no defaults
        found = inspect.Signature(parameters).bind(
            **{keyword: name for name, keyword in python_names(inputs).items()}
        )
    except (TypeError, ValueError):
        return inputs
    named = {python_name(keyword): name for keyword, name in found.kwargs.items()}
    names = [*found.args, *(named.get(python_name(keyword)) for keyword in sorted(trace.inputs[1]))]
    if len(specs) != len(names) or not all(
        name and _fits(inputs[name], spec) for name, spec in zip(names, specs)
    ):
        return inputs
    return {name: inputs[name] for name in names}


def _fits(given: tf.TensorSpec, wanted: Any) -> bool:
    plain = isinstance(wanted, tf.TensorSpec) and wanted.dtype == given.dtype
    return plain and wanted.shape.is_compatible_with(given.shape)


def check_names(key: str, names: Iterable[str]) -> None:
    """Raise SignatureError if two names become the same Python parameter in `tf.saved_model.load`
    (SIG-07).
    """
    adapted: dict[str, str] = {}
    for name in names:
        other = adapted.setdefault(python_name(name), name)
        if other != name:
            reason = (
                f"TensorFlow cannot tell the names of its inputs {other!r} and {name!r} apart,"
                " rename one"
            )
            raise SignatureError(reason, node=key, clause="SIG-07")
