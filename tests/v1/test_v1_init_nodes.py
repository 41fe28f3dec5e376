"""Which nodes run after the restore: main op, legacy init op, collected initialisers."""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.format.names import INIT_SIGNATURE, LEGACY_INIT_OP, MAIN_OP
from reference_impl.graph.node_index import Graph
from reference_impl.v1.reading.init_nodes import init_nodes


def meta_graph_with(**collections):
    meta_graph = schema.MetaGraphDef()
    for name, nodes in collections.items():
        meta_graph.collection_def[name].node_list.value.extend(nodes)
    for name, inputs in (("x", []), ("fill", []), ("train", ["x"]), ("main", []), ("old", [])):
        op = "Placeholder" if name == "x" else "NoOp"
        meta_graph.graph_def.node.add(name=name, op=op, input=inputs)
    return meta_graph


def found(meta_graph):
    return init_nodes(meta_graph, Graph(meta_graph.graph_def, "model"), frozenset(), "model")


def test_the_order_of_preference():
    everything = {MAIN_OP: ["main"], LEGACY_INIT_OP: ["old"], "table_initializer": ["fill"]}
    meta_graph = meta_graph_with(**everything)
    assert found(meta_graph) == ["main"]
    meta_graph.signature_def[INIT_SIGNATURE].outputs["out"].name = "old:0"
    assert found(meta_graph) == ["old"]
    del everything[MAIN_OP]
    assert found(meta_graph_with(**everything)) == ["old"]
    assert found(meta_graph_with()) == []


def test_an_initialiser_that_needs_a_placeholder_is_left_out():
    names = ["fill", "train", "gone", "fill"]
    assert found(meta_graph_with(table_initializer=names)) == ["fill"]
