"""The nodes that a session runs after the restore, found without running anything.

RFC: V1-08, V1-10
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import INIT_SIGNATURE, LEGACY_INIT_OP, MAIN_OP
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.edges import input_source, parse_input
from reference_impl.graph.node_index import Graph
from reference_impl.graph.variable_defs import variable_defs
from reference_impl.v1.reading.extract import PLACEHOLDERS


def init_nodes(
    meta_graph: schema.MetaGraphDef, graph: Graph, hoisted: frozenset[str], file: str
) -> list[str]:
    """Return the nodes of the init op: main op, legacy init op, or else the collected initialisers.

    A collected initialiser that needs a placeholder was meant for training only and is left out.
    Nodes do not need the state, whose nodes are `hoisted`.
    """
    named = _named_init(meta_graph)
    if named is not None:
        return named
    targets = _collected_initializers(meta_graph, graph, file)
    unfed = _needing_placeholders(graph, hoisted) if targets else ()
    return [target for target in targets if target not in unfed]


def _needing_placeholders(graph: Graph, hoisted: frozenset[str]) -> Mapping[str, None]:
    nodes = [node for node in graph if node.name not in hoisted]
    users = reversed_edges((node.name, map(input_source, node.input)) for node in nodes)
    return reachable([node.name for node in nodes if node.op in PLACEHOLDERS], users)


def _named_init(meta_graph: schema.MetaGraphDef) -> Optional[list[str]]:
    if INIT_SIGNATURE in meta_graph.signature_def:
        outputs = meta_graph.signature_def[INIT_SIGNATURE].outputs.values()
        return [parse_input(info.name).source for info in outputs]
    return _listed(meta_graph, MAIN_OP) or _listed(meta_graph, LEGACY_INIT_OP) or None


def _collected_initializers(meta_graph: schema.MetaGraphDef, graph: Graph, file: str) -> list[str]:
    found = _listed(meta_graph, "table_initializer")
    for _, _, definition in variable_defs(meta_graph, ["local_variables"], file):
        found.append(parse_input(definition.initializer_name).source)
    return [name for name in dict.fromkeys(found) if name in graph]


def _listed(meta_graph: schema.MetaGraphDef, collection: str) -> list[str]:
    """Return the nodes that a collection lists."""
    if collection not in meta_graph.collection_def:
        return []
    listed = meta_graph.collection_def[collection].node_list.value
    return [parse_input(text).source for text in listed]
