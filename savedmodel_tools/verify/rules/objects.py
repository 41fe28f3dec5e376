"""The object graph, which Python loads: every number in it is that of an object, every name that of
a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from reference_impl.errors import SavedModelError
from reference_impl.format import limits, schema
from reference_impl.format.names import LIST, TUPLE
from reference_impl.format.values import tensor_proto
from reference_impl.graph.object_references import (
    containers,
    dangling,
    dangling_captures,
    index_of,
    mistyped_references,
    traces,
)
from reference_impl.graph.order import circles
from reference_impl.graph.saved_variables import invalid
from savedmodel_tools.verify.findings import Fault, Severity, graph_rule

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model


@graph_rule(
    "SMC311",
    "object-reference",
    Severity.ERROR,
    summary="An object refers to an object, a function, a constant or an asset that is not there.",
    why="tf.saved_model.load fails, or makes something else of it; servers do not notice.",
    fix="Export again; if a tool removed functions or nodes, it must edit the object graph too.",
)
def object_reference(model: Model, graph: Graph) -> Iterator[Fault]:
    objects = graph.objects
    for number, role, other in dangling(objects):
        yield Fault(f"{role} of object {number} is object {other} of {len(objects.nodes)}")
    for name, other in dangling_captures(objects):
        yield Fault(f"a capture is object {other} of {len(objects.nodes)}", function=name)
    for number, item in enumerate(objects.nodes):
        yield from _named(graph, number, item)
    for name in sorted(objects.concrete_functions):
        if name not in graph.library.functions:
            yield Fault(
                f"the object graph describes the function {name!r}, which is not in the library",
                function=name,
            )


@graph_rule(
    "SMC312",
    "variable-invalid",
    Severity.ERROR,
    summary="A variable of the object graph has a dtype, a shape or a setting that does not exist.",
    why=(
        "Python cannot make the variable: tf.saved_model.load and reference_impl.load fail. Servers"
        " do not look at it."
    ),
    fix="Export again; in a model from somebody else, ask for an undamaged copy.",
)
def variable_invalid(model: Model, graph: Graph) -> Iterator[Fault]:
    severity = _severity(graph)
    for number, item in enumerate(graph.objects.nodes):
        reason = invalid(item.variable) if item.HasField("variable") else None
        if reason is not None:
            yield Fault(
                f"the variable {graph.paths.label(number)} ({item.variable.name!r}): {reason}",
                severity=severity,
            )


@graph_rule(
    "SMC313",
    "object-role",
    Severity.ERROR,
    summary=(
        "An object is in a role that it cannot play, such as a variable in place of the function"
        " that makes a table."
    ),
    why=(
        "tf.saved_model.load fails without naming it, or takes memory without end;"
        " reference_impl.load refuses the model."
    ),
    fix="Export again; in a model from somebody else, ask for an undamaged copy.",
)
def object_role(model: Model, graph: Graph) -> Iterator[Fault]:
    severity = _severity(graph)
    for number, reason, _ in mistyped_references(graph.objects):
        yield Fault(f"{graph.paths.label(number)}: {reason}", severity=severity)
    for number, length in _long_lists(graph.objects):
        yield Fault(
            f"{graph.paths.label(number)} is a list or tuple of {length} elements by its names",
            severity=severity,
        )
    for name, function in sorted(graph.objects.concrete_functions.items()):
        definition = graph.library.functions.get(name)
        if definition is not None and len(function.bound_inputs) > len(
            definition.signature.input_arg
        ):
            held, taken = len(function.bound_inputs), len(definition.signature.input_arg)
            yield Fault(
                f"the function captures {held} objects and takes {taken} arguments",
                function=name,
                severity=severity,
            )


@graph_rule(
    "SMC314",
    "container-in-itself",
    Severity.ERROR,
    summary="A list, a dict or a tuple contains itself.",
    why=(
        "No Python loader can build it: reference_impl.load refuses the model, tf.saved_model.load"
        " ends in a RecursionError."
    ),
    fix="Export again; in a model from somebody else, ask for an undamaged copy.",
)
def container_in_itself(model: Model, graph: Graph) -> Iterator[Fault]:
    severity = _severity(graph)
    for numbers in circles(containers(graph.objects)):
        others = f" ({len(numbers)} containers contain each other)" if len(numbers) > 1 else ""
        yield Fault(f"{graph.paths.label(numbers[0])} contains itself{others}", severity=severity)


@graph_rule(
    "SMC315",
    "constant-damaged",
    Severity.ERROR,
    summary=(
        "A captured constant has a value that does not fit its shape or dtype, or is far larger"
        " than in the file."
    ),
    why=(
        "reference_impl.load, and sessions and servers that run the constant, refuse the model."
        " tf.saved_model.load takes some of them, since NumPy fills a negative size in,"
        " and answers with a shape that the file does not say."
    ),
    fix="Export again; in a model from somebody else, ask for an undamaged copy.",
)
def constant_damaged(model: Model, graph: Graph) -> Iterator[Fault]:
    severity, grown = _severity(graph), 0
    for number, node in _constants(graph):
        try:
            tensor_proto.check(node.attr["value"].tensor)
            grown += tensor_proto.extra_bytes(node.attr["value"].tensor)
        except SavedModelError as error:
            yield Fault(
                f"the constant {graph.paths.label(number)}: {error.reason}",
                node=node.name,
                severity=severity,
            )
    if grown > limits.FILLED_BYTES:
        yield Fault(f"the constants take {grown:,} bytes more than are stored", severity=severity)


@graph_rule(
    "SMC321",
    "additions-damaged",
    Severity.WARNING,
    summary="The additions of this project to TensorFlow's format cannot be read.",
    why="TensorFlow does not look at it; reference_impl.load refuses the model.",
    fix=(
        "Save the model again with reference_impl.save, or remove the collection"
        " savedmodel_compat.extension."
    ),
)
def additions_damaged(model: Model, graph: Graph) -> Iterator[Fault]:
    try:
        graph.additional()
    except SavedModelError as error:
        yield Fault(f"{type(error).__name__}: {error}")


def _named(graph: Graph, number: int, item: Any) -> Iterator[Fault]:
    """Functions, nodes and assets that an object names."""
    kind = item.WhichOneof("kind")
    if kind in ("function", "bare_concrete_function"):
        for name in traces(item):
            if name not in graph.objects.concrete_functions:
                yield Fault(
                    f"object {number} has the trace {name!r}, which the object graph does not"
                    " describe",
                    function=name,
                )
    elif kind == "constant":
        node = graph.nodes.get(item.constant.operation)
        if node is None or "value" not in node.attr:
            fault = "is not there" if node is None else f"is a {node.op} without a value"
            yield Fault(
                f"the constant of object {number} is node {item.constant.operation!r}, which"
                f" {fault}"
            )
    elif (
        kind == "captured_tensor"
        and item.captured_tensor.concrete_function not in graph.library.functions
    ):
        where = item.captured_tensor.concrete_function
        yield Fault(
            f"object {number} is a tensor in the function {where!r}, which is not in the library",
            function=where,
        )
    elif kind == "asset" and not 0 <= item.asset.asset_file_def_index < len(
        graph.proto.asset_file_def
    ):
        count = len(graph.proto.asset_file_def)
        yield Fault(f"object {number} is asset {item.asset.asset_file_def_index} of {count}")


def _constants(graph: Graph) -> Iterator[tuple[int, schema.NodeDef]]:
    """Yield each captured constant with the node that holds its value.

    Those without one have a rule of their own.
    """
    for number, item in enumerate(graph.objects.nodes):
        node = graph.nodes.get(item.constant.operation) if item.HasField("constant") else None
        if node is not None and "value" in node.attr:
            yield number, node


def _long_lists(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, int]]:
    """Yield the number and the length of lists and tuples that claim more elements than a loader
    can afford.
    """
    for number, node in enumerate(graph.nodes):
        if node.user_object.identifier in (LIST, TUPLE):
            last = max(
                (
                    index
                    for child in node.children
                    if (index := index_of(child.local_name)) is not None
                ),
                default=-1,
            )
            if last >= limits.LIST_ELEMENTS:
                yield number, last + 1


def _severity(graph: Graph) -> Severity | None:
    """Return how grave a finding is where ``tf.saved_model.load`` passes the object graph over,
    else None.
    """
    return Severity.WARNING if graph.is_cut else None
