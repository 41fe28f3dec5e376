"""Lookup tables: every table must be filled before a look-up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat_matrix.models.verify.findings import Fault, Severity, graph_rule
from compat_matrix.models.verify.handles import FILL, Handles
from reference_impl.graph.edges import parse_input

if TYPE_CHECKING:
    from compat_matrix.models.verify.model import Graph, Model

# Tables that are filled once and then only read. Mutable ones may begin empty, anonymous ones are made by their users.
TABLES = frozenset({"HashTable", "HashTableV2"})


@graph_rule(
    "SMC401",
    "table-not-initialised",
    Severity.ERROR,
    summary="A signature looks up in a table that no initialiser fills when the model is loaded.",
    why='Every call fails with "Table not initialized", in servers, in Java, in sessions.',
    fix="Export with an init op that runs the initialisers: main_op=tf.compat.v1.tables_initializer() in TF 1.x; in TF 2.x make "
    "the table an attribute of the exported object.",
)
def table_not_initialised(model: Model, graph: Graph) -> Iterator[Fault]:
    if not any(graph.of_op(TABLES)):
        return
    handles = Handles(graph.library, graph.nodes, FILL, graph.calls)
    filled = handles.assigned(graph.at_init) | {item.node for item in graph.plan}
    makers = _makers(graph)
    told: set[str] = set()
    for key, reached in graph.signatures.items():
        tables = [name for name in reached.nodes if name in makers and name not in filled and name not in told]
        own = handles.assigned(reached) if tables else set()
        for name in tables:
            if name not in own:
                told.add(name)
                exists = any(name in handles.assigned(graph.reached([node])) for node in _fillers(graph))
                how = "its initialiser exists, but no init op runs it" if exists else "it has no initialiser"
                # Other tags are for programs that know to run the collection of initialisers, such as tf.Transform.
                severity = None if "serve" in graph.proto.meta_info_def.tags else Severity.WARNING
                yield Fault(f"signature {key!r} looks up in {name!r}: {how}", node=name, severity=severity)


def _makers(graph: Graph) -> set[str]:
    """Nodes of the main graph that make a table: the op, or a call of a function that returns one."""
    returning = set()
    for name, function in graph.library.functions.items():
        tables = {node.name for node in function.node_def if node.op in TABLES}
        if any(parse_input(text, True).source in tables for text in function.ret.values()):
            returning.add(name)
    return {name for name, op in graph.main.op_of.items() if op in TABLES or graph.library.called(graph.nodes[name]) in returning}


def _fillers(graph: Graph) -> list[str]:
    return [name for name, op in graph.main.op_of.items() if op in FILL][:100]
