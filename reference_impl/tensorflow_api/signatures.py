"""The arguments of tf.functions and concrete functions, as Python sees them."""

from __future__ import annotations

import inspect
import keyword
from typing import Any, Optional

import tensorflow as tf

from reference_impl.graph.argument_names import python_name


def is_unknown_argument(leaf: object) -> bool:
    """Return whether a leaf of a trace's arguments represents a Python object that TensorFlow did
    not keep.

    RFC: FN-09
    """
    return type(leaf).__name__ == "UnknownArgument"


def traced_arguments(
    concrete: tf.types.experimental.ConcreteFunction,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the ``structured_input_signature`` of a traced function, with the `tf.TensorShape`s
    among its arguments.

    The signature itself does not keep shapes. The trace type of an argument
    (`FunctionType.parameters` is public since 2.15; types of values are in
    core.function.trace_type, 2.12-2.21) has a weak reference to the shape.

    A function that was cut out of a graph (`prune`, variables made constants) has no such
    signature. Its flat arguments are returned as positional ones.

    RFC: PY-07
    """
    if concrete.structured_input_signature is None:
        given = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
        return tuple(tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in given), {}
    args, kwargs = concrete.structured_input_signature
    kind = getattr(concrete, "function_type", None)
    parameters = [] if kind is None else list(kind.parameters.values())  # 2.12 has none
    keyword = {
        p.name: p.type_constraint for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY
    }
    positional = [p.type_constraint for p in parameters if p.name not in keyword]
    found = tuple(map(_with_shapes, args, positional)) if len(positional) == len(args) else args
    return found, {name: _with_shapes(value, keyword.get(name)) for name, value in kwargs.items()}


def _with_shapes(value: object, kind: object) -> Any:
    if is_unknown_argument(value):
        held = getattr(kind, "_ref", lambda: None)()
        return held if isinstance(held, tf.TensorShape) else value
    if isinstance(value, dict) and hasattr(kind, "mapping"):
        return type(value)(
            {key: _with_shapes(item, kind.mapping.get(key)) for key, item in value.items()}
        )
    kind = getattr(
        kind, "attributes", getattr(kind, "components_tuple", kind)
    )  # of namedtuples, of lists
    parts = getattr(kind, "components", ())
    if isinstance(value, (list, tuple)) and len(parts) == len(value):
        made = [_with_shapes(item, part) for item, part in zip(value, parts)]
        return value._make(made) if hasattr(value, "_make") else type(value)(made)
    return value


def python_signature(function: tf.types.experimental.Callable) -> Optional[inspect.Signature]:
    """Return the Python signature of a tf.function or concrete function, without `self`; None if it
    has none.

    `_function_type` and `_default_values` are in 2.14-2.21, `_function_spec` with `fullargspec` in
    2.4-2.13. `inspect.signature` of the Python function is not enough: for a function that
    TensorFlow loaded it is `(*args, **kwargs)`.
    """
    kinds = inspect.Parameter
    kind = getattr(function, "_function_type", None) or getattr(function, "function_type", None)
    if kind is not None:
        defaults = getattr(function, "_default_values", None) or {}
        found = [
            kinds(name, p.kind, default=defaults.get(name, kinds.empty))
            for name, p in kind.parameters.items()
        ]
        return inspect.Signature(found, __validate_parameters__=False)
    spec = getattr(getattr(function, "_function_spec", None), "fullargspec", None)
    if spec is None:
        return None
    return signature_of_fullargspec(
        spec, getattr(function._function_spec, "is_method", False)
    )  # not in 2.13


def signature_of_fullargspec(spec: inspect.FullArgSpec, is_method: bool) -> inspect.Signature:
    """Return the signature that `inspect.getfullargspec` or a file describes, without `self`.

    It is not validated: TensorFlow lets an argument without a default follow one that has one
    (functools.partial). Names in a file are arbitrary; they are converted as TensorFlow converts
    the names of inputs, since both must match in a re-export.

    RFC: SIG-07
    """
    kinds = inspect.Parameter
    defaults = spec.defaults or ()
    values = dict(zip(spec.args[len(spec.args) - len(defaults) :], defaults))
    args = spec.args[1:] if is_method or spec.args[:1] == ["self"] else spec.args
    parts: list[tuple[Any, list[str], dict[str, Any]]] = [
        (kinds.POSITIONAL_OR_KEYWORD, args, values),
        (kinds.VAR_POSITIONAL, [spec.varargs] if spec.varargs else [], {}),
        (kinds.KEYWORD_ONLY, spec.kwonlyargs, spec.kwonlydefaults or {}),
        (kinds.VAR_KEYWORD, [spec.varkw] if spec.varkw else [], {}),
    ]
    parameters: list[inspect.Parameter] = []
    for kind, names, known in parts:
        parameters += [
            kinds(_identifier(name), kind, default=known.get(name, kinds.empty)) for name in names
        ]
    return inspect.Signature(parameters, __validate_parameters__=False)


def _identifier(name: str) -> str:
    return name if name.isidentifier() and not keyword.iskeyword(name) else python_name(name)
