"""Functions of the object graph: arguments, traces, captures, structures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from property_tests.faults.losses.registry import each, loss, set_field
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT


def functions(graph: Any) -> list[Any]:
    return [
        node.function
        for node in graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "function"
    ]


def _full_argument_specs(graph: Any) -> Iterator[dict[str, Any]]:
    for function in functions(graph):
        yield {
            pair.key: pair.value
            for pair in function.function_spec.fullargspec.named_tuple_value.values
        }


@loss
def argument_names(graph: Any, model: Path) -> bool:
    """Parameters have other names."""

    def change(spec: dict[str, Any]) -> bool:
        names = [item for item in spec["args"].list_value.values if item.string_value != "self"]
        for item in names:
            item.string_value = f"lost_{item.string_value}"
        return bool(names)

    return each(_full_argument_specs(graph), change)


@loss
def defaults(graph: Any, model: Path) -> bool:
    """Defaults of parameters are another number, text or flag."""

    def change(spec: dict[str, Any]) -> bool:
        positional = [*spec["defaults"].list_value.values, *spec["defaults"].tuple_value.values]
        found = [*positional, *spec["kwonlydefaults"].dict_value.fields.values()]
        for value in found:
            value.Clear()
            value.int64_value = 77
        return bool(found)

    return each(_full_argument_specs(graph), change)


@loss
def traces(graph: Any, model: Path) -> bool:
    """Of several traces only the first is kept."""

    def change(function: Any) -> bool:
        several = len(function.concrete_functions) > 1
        del function.concrete_functions[1:]
        return several

    return each(functions(graph), change)


@loss
def captures(graph: Any, model: Path) -> bool:
    """Captures of equal dtype and shape are in another order."""
    nodes = graph.object_graph_def.nodes

    def kind(number: int) -> str:
        variable = nodes[number].variable
        return str(
            (
                nodes[number].WhichOneof("kind"),
                variable.dtype,
                [dim.size for dim in variable.shape.dim],
            )
        )

    def change(function: Any) -> bool:
        found = list(function.bound_inputs)
        order = sorted(range(len(found)), key=lambda place: (kind(found[place]), place))
        swapped = list(found)
        for one, other in zip(order, order[1:]):
            if kind(found[one]) == kind(found[other]) and found[one] != found[other]:
                swapped[one], swapped[other] = found[other], found[one]
                break
        function.bound_inputs[:] = swapped
        return swapped != found

    return each(graph.object_graph_def.concrete_functions.values(), change)


def walk(value: Any) -> Iterator[Any]:
    yield value
    kind = value.WhichOneof("kind")
    if kind in ("list_value", "tuple_value", "named_tuple_value"):
        for item in getattr(value, kind).values:
            yield from walk(item.value if kind == "named_tuple_value" else item)
    elif kind == "dict_value":
        for item in value.dict_value.fields.values():
            yield from walk(item)


@loss
def literals(graph: Any, model: Path) -> bool:
    """The numbers, texts and flags that a trace was made for are others."""

    def change(value: Any) -> bool:
        kind = value.WhichOneof("kind")
        if kind in ("float64_value", "int64_value", "bool_value", "string_value"):
            value.Clear()
            value.string_value = "lost"
            return True
        return False

    functions = graph.object_graph_def.concrete_functions.values()
    return each(
        [v for function in functions for v in walk(function.canonicalized_input_signature)], change
    )


@loss
def composites(graph: Any, model: Path) -> bool:
    """Sparse results are declared as ragged, and ragged ones as sparse."""
    found = [
        value.type_spec_value
        for value in structures(graph)
        if value.WhichOneof("kind") == "type_spec_value"
    ]
    other = {1: 3, 3: 1}  # SPARSE_TENSOR_SPEC, RAGGED_TENSOR_SPEC
    return each(
        found,
        lambda spec: set_field(
            spec, "type_spec_class", other.get(spec.type_spec_class, spec.type_spec_class)
        ),
    )


@loss
def listed_arguments(graph: Any, model: Path) -> bool:
    """Where a tensor was declared a list is demanded: a Python list is no longer converted to one
    tensor.
    """

    def change(value: Any) -> bool:
        if value.WhichOneof("kind") != "tensor_spec_value":
            return False
        spec = schema.StructuredValue()
        spec.CopyFrom(value)
        value.Clear()
        value.list_value.values.add().CopyFrom(spec)
        return True

    functions = graph.object_graph_def.concrete_functions.values()
    return each(
        [v for function in functions for v in list(walk(function.canonicalized_input_signature))],
        change,
    )


def structures(graph: Any) -> Iterator[Any]:
    for function in graph.object_graph_def.concrete_functions.values():
        yield from walk(function.output_signature)


@loss
def containers(graph: Any, model: Path) -> bool:
    """Tuples of results become lists, and lists tuples."""

    def change(value: Any) -> bool:
        kind = value.WhichOneof("kind")
        if kind == "list_value":
            value.tuple_value.values.extend(list(value.list_value.values))
        elif kind == "tuple_value":
            value.list_value.values.extend(list(value.tuple_value.values))
        return kind in ("list_value", "tuple_value")

    return each(list(structures(graph)), change)


@loss
def namedtuples(graph: Any, model: Path) -> bool:
    """The namedtuples of results have another type name."""
    found = [
        value.named_tuple_value
        for value in structures(graph)
        if value.WhichOneof("kind") == "named_tuple_value"
    ]
    return each(found, lambda value: set_field(value, "name", "Lost"))


@loss
def keys(graph: Any, model: Path) -> bool:
    """The dicts of results have other keys."""

    def change(value: Any) -> bool:
        fields = value.dict_value.fields
        for key in list(fields):
            fields[f"lost_{key}"].CopyFrom(fields[key])
            del fields[key]
        return bool(fields)

    inside = [
        f
        for name, f in graph.object_graph_def.concrete_functions.items()
        if "signature_wrapper" not in name
    ]
    return each([v for function in inside for v in walk(function.output_signature)], change)


@loss
def custom_gradients(graph: Any, model: Path) -> bool:
    """The gradients that were registered for functions are missing."""
    found = len(graph.graph_def.library.registered_gradients)
    graph.graph_def.library.ClearField("registered_gradients")
    return bool(found)


@loss
def standard_gradients(graph: Any, model: Path) -> bool:
    """Registered gradients are forgotten without a word: each op has the gradient that its type has
    elsewhere.
    """
    library = graph.graph_def.library
    nodes = [
        *graph.graph_def.node,
        *(node for function in library.function for node in function.node_def),
    ]
    return each(nodes, _as_elsewhere) and custom_gradients(graph, model)


def _as_elsewhere(node: Any) -> bool:
    marked = CUSTOM_GRADIENT in node.attr
    if marked:
        del node.attr[CUSTOM_GRADIENT]
    return marked


@loss
def function_attributes(graph: Any, model: Path) -> bool:
    """The attributes of functions about compilation and implemented interfaces are missing."""

    def change(function: Any) -> bool:
        found = [
            name
            for name in ("_XlaMustCompile", "api_implements", "_implements")
            if name in function.attr
        ]
        for name in found:
            del function.attr[name]
        return bool(found)

    return each(graph.graph_def.library.function, change)
