"""Specs, values and Python signatures as short text: ``f(x: float32[?,3], training=True) ->
(float32[?], string[])``.

``float32[]`` is a scalar, ``?`` an unknown size, ``float32[...]`` a tensor of unknown rank. A
literal that a call must repeat (a Python argument) follows ``=``, a tensor's spec follows ``:``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.values import dtypes, tensor_proto
from reference_impl.format.values.shapes import shape_of, shape_text
from reference_impl.format.values.structure import nested_values

_COMPOSITES = {
    "RAGGED_TENSOR_SPEC": "Ragged",
    "SPARSE_TENSOR_SPEC": "Sparse",
    "VARIABLE_SPEC": "Variable",
}
_SPECS = frozenset({"tensor_spec_value", "bounded_tensor_spec_value", "type_spec_value"})
_LONG = 80
_SHOWN = 6  # elements of a literal array


def dtype_name(number: int) -> str:
    """Return TensorFlow's name of a dtype, or the number of an unknown dtype."""
    try:
        return dtypes.by_number(number).name
    except errors.DtypeError:
        return "invalid" if number == 0 else f"dtype_{number}"


def spec_text(dtype: int, shape: schema.TensorShapeProto) -> str:
    """Return ``float32[?,3]``."""
    return dtype_name(dtype) + shape_text(shape_of(shape))


def value_text(value: schema.StructuredValue) -> str:
    """Return a StructuredValue as text.

    Nesting is bounded by the parser's limit on nested messages.

    RFC: FMT-05
    """
    kind = value.WhichOneof("kind")
    if kind is None or kind == "none_value":
        return "None"
    if kind in ("bool_value", "int64_value", "float64_value", "string_value"):
        return repr(getattr(value, kind))
    if kind == "tensor_shape_value":
        return shape_text(shape_of(value.tensor_shape_value))
    if kind == "tensor_dtype_value":
        return dtype_name(value.tensor_dtype_value)
    if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
        spec = getattr(value, kind)
        return spec_text(spec.dtype, spec.shape)
    if kind == "type_spec_value":
        return type_spec_text(value.type_spec_value)
    if kind in ("tensor_value", "numpy_value"):
        return tensor_text(getattr(value, kind))
    if kind == "list_value":
        return "[" + ", ".join(map(value_text, value.list_value.values)) + "]"
    if kind == "tuple_value":
        items = [value_text(item) for item in value.tuple_value.values]
        return f"({items[0]},)" if len(items) == 1 else "(" + ", ".join(items) + ")"
    if kind == "dict_value":
        fields = value.dict_value.fields
        return (
            "{" + ", ".join(f"{key!r}: {value_text(fields[key])}" for key in sorted(fields)) + "}"
        )
    pairs = ", ".join(
        f"{pair.key}={value_text(pair.value)}" for pair in value.named_tuple_value.values
    )
    return f"{value.named_tuple_value.name}({pairs})"


def type_spec_text(spec: schema.TypeSpecProto) -> str:
    """Return a composite type as text: ``Ragged(float32[?,?])``, ``Sparse(int64[?,4])``, else its
    class name and state.
    """
    state = list(spec.type_state.tuple_value.values)
    kinds = [item.WhichOneof("kind") for item in state[:2]]
    short = {
        schema.TypeSpecProto.TypeSpecClass.Value(name): text for name, text in _COMPOSITES.items()
    }
    if spec.type_spec_class in short and kinds == ["tensor_shape_value", "tensor_dtype_value"]:
        inner = spec_text(state[1].tensor_dtype_value, state[0].tensor_shape_value)
        return f"{short[spec.type_spec_class]}({inner})"
    name = spec.type_spec_class_name.rpartition(".")[2] or short.get(
        spec.type_spec_class, f"TypeSpec{spec.type_spec_class}"
    )
    return (
        f"{name}({', '.join(map(value_text, state))})"
        if state
        else f"{name}({value_text(spec.type_state)})"
    )


def tensor_text(tensor: schema.TensorProto) -> str:
    """Return a literal tensor as text: dtype, shape and the first few elements, if it can be
    read.
    """
    spec = spec_text(tensor.dtype, tensor.tensor_shape)
    try:
        shown, count = tensor_proto.first_numbers(tensor, _SHOWN) or _first_elements(tensor)
    except errors.SavedModelError:
        return spec
    return f"{spec} = {', '.join(map(repr, shown))}{', …' if count > _SHOWN else ''}"


def _first_elements(tensor: schema.TensorProto) -> tuple[list[object], int]:
    """Return the first elements of a tensor of any dtype, and how many elements it has."""
    values = tensor_proto.decode(tensor)
    first = [value.item() if hasattr(value, "item") else value for value in values.flat[:_SHOWN]]
    return first, values.size


def attribute_text(value: schema.AttrValue) -> str:
    """Return an attribute of a node as text, shortened if it is long."""
    kind = value.WhichOneof("value")
    if kind == "type":
        return dtype_name(value.type)
    if kind == "shape":
        return shape_text(shape_of(value.shape))
    if kind == "tensor":
        return tensor_text(value.tensor)
    if kind == "func":
        return value.func.name
    text = repr(getattr(value, kind)) if kind else "(unset)"
    if kind == "list":
        text = str(value.list).replace("\n", " ").strip()
    return errors.shortened(text, _LONG)


def _argument(name: str, value: schema.StructuredValue) -> str:
    text = value_text(value)
    if not name:
        return text
    holds_tensor = any(item.WhichOneof("kind") in _SPECS for item in nested_values(value))
    return f"{name}: {text}" if holds_tensor else f"{name}={text}"


def parameter_names(spec: Optional[schema.FunctionSpec]) -> list[str]:
    """Return the names of the positional parameters of a function without ``self``
    (FunctionSpec.fullargspec).
    """
    if spec is None:
        return []
    for pair in spec.fullargspec.named_tuple_value.values:
        if pair.key == "args":
            names = [item.string_value for item in pair.value.list_value.values]
            return names[1:] if names[:1] == ["self"] or (spec.is_method and names) else names
    return []


def bound_arguments(
    names: Sequence[str], trace: schema.SavedConcreteFunction
) -> list[tuple[str, schema.StructuredValue]]:
    """Return the arguments of a trace with the parameters that they belong to; '' for arguments of
    ``*args``.

    `names` belong to the positional parameters. Keywords come last, sorted.
    """
    signature = list(trace.canonicalized_input_signature.tuple_value.values)
    positional = list(signature[0].tuple_value.values) if signature else []
    keywords = signature[1].dict_value.fields if len(signature) > 1 else {}
    arguments = [
        (names[index] if index < len(names) else "", value)
        for index, value in enumerate(positional)
    ]
    return arguments + [(key, keywords[key]) for key in sorted(keywords)]


def trace_text(name: str, names: Sequence[str], trace: schema.SavedConcreteFunction) -> str:
    """Return one trace of a function as a Python declaration.

    `names` belong to its positional parameters.
    """
    arguments = [_argument(*bound) for bound in bound_arguments(names, trace)]
    return f"{name}({', '.join(arguments)}) -> {value_text(trace.output_signature)}"


def flat_text(name: str, function: schema.FunctionDef, captures: int) -> str:
    """Return the flat signature of a FunctionDef without its ``captures`` last inputs."""
    inputs = list(function.signature.input_arg)
    arguments = ", ".join(
        f"{item.name}: {_flat_type(item)}" for item in inputs[: max(len(inputs) - captures, 0)]
    )
    return f"{name}({arguments}) -> ({', '.join(map(_flat_type, function.signature.output_arg))})"


def _flat_type(argument: schema.OpDef.ArgDef) -> str:
    return dtype_name(argument.type) if argument.type else argument.type_attr or "?"
