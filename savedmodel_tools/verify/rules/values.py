"""Values and their users: what is restored is stored and fits, variables that are read have a
value, tables are filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.errors import DtypeError, ShapeError
from reference_impl.format.names import VALUE
from reference_impl.format.values.shapes import covers, shape_of, shape_text
from reference_impl.graph.edges import parse_input
from reference_impl.graph.saved_variables import check_value, invalid
from reference_impl.graph.variable_defs import VARIABLE_OPS
from savedmodel_tools.verify.assignments import FILL, Assignments
from savedmodel_tools.verify.consequences import CALL_MAY_FAIL
from savedmodel_tools.verify.findings import Fault, Severity, graph_rule

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

# Tables that are filled once and then only read. Mutable ones may begin empty, anonymous ones are
# made by their users.
TABLES = frozenset({"HashTable", "HashTableV2"})


@graph_rule(
    "SMC211",
    "value-missing",
    Severity.ERROR,
    summary="The graph restores a key that the checkpoint does not have.",
    why="The restore op fails: the C++ loader, servers and the v1 loader cannot load the model.",
    fix="Graph and checkpoint are of different exports: copy both again, or export again.",
)
def value_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    if model.entries is None:
        return
    for key, item in {item.key: item for item in graph.plan}.items():
        if key not in model.entries:
            yield Fault(
                f"the checkpoint has no value for {key!r}, which {item.op} {item.node!r} takes",
                node=item.node,
            )


@graph_rule(
    "SMC212",
    "value-misfit",
    Severity.ERROR,
    summary="A stored value has another dtype or shape than the variable that takes it.",
    why="Restoring fails, or the variable changes its shape and the computation fails later.",
    fix="Graph and checkpoint are of different exports: copy both again, or export again.",
)
def value_misfit(model: Model, graph: Graph) -> Iterator[Fault]:
    """Both the restore op of the graph and the object graph say what is restored."""
    told = set()
    for key, fault in _restored_misfits(model, graph):
        told.add(key)
        yield fault
    for number, keys in (
        graph.keys.items() if model.entries is not None and graph.has_objects else ()
    ):
        node, entry = graph.saved.nodes[number], (model.entries or {}).get(keys.get(VALUE, ""))
        if (
            entry is None
            or keys[VALUE] in told
            or not node.HasField("variable")
            or _is_composed(node)
            or invalid(node.variable)
        ):
            continue
        try:
            check_value(node.variable, entry)
        except (DtypeError, ShapeError) as error:
            yield Fault(
                f"the variable {graph.paths.label(number)} ({keys[VALUE]!r}): {error.reason}"
            )


def _restored_misfits(model: Model, graph: Graph) -> Iterator[tuple[str, Fault]]:
    """(key, fault) of what the restore op reads."""
    for item in graph.plan if model.entries is not None else ():
        entry = (model.entries or {}).get(item.key)
        if entry is None:
            continue
        if entry.dtype.name != item.dtype:
            yield (
                item.key,
                Fault(
                    f"{item.key!r} is stored as {entry.dtype.name} and read as {item.dtype}",
                    node=item.node,
                ),
            )
            continue
        node = graph.nodes.get(item.node)
        if item.slice or node is None or node.op not in VARIABLE_OPS or "shape" not in node.attr:
            continue
        shape = shape_of(node.attr["shape"].shape)
        # TF 1.x writes [] also for a variable of unknown shape.
        if not shape or item.by not in ("Assign", "AssignVariableOp"):
            continue
        if not covers(shape, entry.shape):
            shapes = f"shape {shape_text(entry.shape)}, the variable has {shape_text(shape)}"
            yield item.key, Fault(f"{item.key!r} is stored with {shapes}", node=item.node)


@graph_rule(
    "SMC213",
    "variable-without-value",
    Severity.ERROR,
    summary="A signature reads a variable that nothing restores, initialises or assigns.",
    why=(
        "The call fails in servers and sessions (uninitialized value); Python, which restores"
        " objects, may answer."
    ),
    fix=(
        "Track the variable (make it an attribute of the exported object), or put it into the"
        " Saver, and export again. A Keras 3 model: model.export(path) in place of"
        " tf.saved_model.save."
    ),
)
def variable_without_value(model: Model, graph: Graph) -> Iterator[Fault]:
    restored = {item.node for item in graph.plan}
    read = {}
    for key, reached in graph.signatures.items():
        read[key] = [
            name
            for name in reached.nodes
            if graph.main.op_of.get(name) in VARIABLE_OPS and name not in restored
        ]
    if not any(read.values()):
        return
    assignments = Assignments(graph.library, graph.nodes, calls=graph.calls)
    told = assignments.assigned(graph.at_init)
    for key, names in read.items():
        own = assignments.assigned(graph.signatures[key]) if names else set()
        for name in names:
            if name not in told and name not in own:
                told.add(name)
                message = f"signature {key!r} reads {name!r}, which has no value after loading"
                yield Fault(message, node=name, parts=graph.parts(key))


@graph_rule(
    "SMC214",
    "object-without-value",
    Severity.ERROR,
    summary=(
        "A variable of the object graph, or one that a function captures, has no value in the"
        " checkpoint."
    ),
    why=(
        "tf.saved_model.load refuses the model, or loads the variable without a value and the first"
        " call fails."
    ),
    fix=(
        "Make the variable an attribute of the exported object (or of an object in it) and export"
        " again."
    ),
)
def object_without_value(model: Model, graph: Graph) -> Iterator[Fault]:
    """Captured variables without a key, and keys without a value; slots and parts nobody captures
    may lack one.
    """
    if model.entries is None or model.tracked is None or not graph.has_objects:
        return
    nodes = graph.saved.nodes
    captured: dict[int, str] = {}
    for name, function in sorted(graph.saved.concrete_functions.items()):
        for number in function.bound_inputs:
            if 0 <= number < len(nodes) and nodes[number].HasField("variable"):
                captured[number] = name
    for number, node in enumerate(nodes):
        if not node.HasField("variable"):
            continue
        key = graph.keys.get(number, {}).get(VALUE)
        if key is not None and key not in model.entries:
            yield Fault(
                f"the variable {graph.paths.label(number)} has no value: the checkpoint lacks"
                f" {key!r}"
            )
        elif key is None and number in captured and not _is_composed(node):
            what = f"{captured[number]} captures the variable {graph.paths.label(number)}"
            yield Fault(
                f"{what} ({node.variable.name!r}), which the checkpoint does not know",
                function=captured[number],
            )


def _is_composed(node: object) -> bool:
    """Whether the values are those of its parts (EXPAND_DISTRIBUTED_VARIABLES), or a saver of its
    own knows them.
    """
    return bool(node.variable.experimental_distributed_variable_components or node.registered_saver)  # type: ignore[attr-defined]


@graph_rule(
    "SMC401",
    "table-not-initialised",
    Severity.ERROR,
    summary="A signature looks up in a table that no initialiser fills when the model is loaded.",
    why='Every call fails with "Table not initialized", in servers, in Java, in sessions.',
    fix=(
        "Export with an init op that runs the initialisers:"
        " main_op=tf.compat.v1.tables_initializer() in TF 1.x; in TF 2.x make the table an"
        " attribute of the exported object."
    ),
)
def table_not_initialised(model: Model, graph: Graph) -> Iterator[Fault]:
    if not any(graph.of_op(TABLES)):
        return
    assignments = Assignments(graph.library, graph.nodes, FILL, graph.calls)
    filled = assignments.assigned(graph.at_init) | {item.node for item in graph.plan}
    makers = _makers(graph)
    told: set[str] = set()
    for key, reached in graph.signatures.items():
        tables = [
            name
            for name in reached.nodes
            if name in makers and name not in filled and name not in told
        ]
        own = assignments.assigned(reached) if tables else set()
        for name in tables:
            if name not in own:
                told.add(name)
                fillers = [node for node, op in graph.main.op_of.items() if op in FILL][:100]
                exists = any(
                    name in assignments.assigned(graph.reached([node])) for node in fillers
                )
                how = (
                    "its initialiser exists, but no init op runs it"
                    if exists
                    else "it has no initialiser"
                )
                # Other tags are for programs that know to run the collection of initialisers, such
                # as tf.Transform.
                severity = None if "serve" in graph.proto.meta_info_def.tags else Severity.WARNING
                message = f"signature {key!r} looks up in {name!r}: {how}"
                stopped = None if exists or not graph.is_cut else CALL_MAY_FAIL
                yield Fault(
                    message,
                    node=name,
                    severity=severity,
                    parts=graph.parts(key),
                    consequences=stopped,
                )


def _makers(graph: Graph) -> set[str]:
    """Nodes of the main graph that make a table: the op, or a call of a function that returns
    one.
    """
    returning = set()
    for name, function in graph.library.functions.items():
        tables = {node.name for node in function.node_def if node.op in TABLES}
        if any(parse_input(text, True).source in tables for text in function.ret.values()):
            returning.add(name)
    return {
        name
        for name, op in graph.main.op_of.items()
        if op in TABLES or graph.library.called(graph.nodes[name]) in returning
    }
