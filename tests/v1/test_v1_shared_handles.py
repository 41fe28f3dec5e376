"""Nodes of one shared name are one resource, as in a session."""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.v1.reading.shared_handles import makes_shared_handle, merge_by_shared_name


def op_def(name):
    definition = schema.OpDef(name=name, is_stateful=name != "Identity")
    definition.output_arg.add(name="handle", type=schema.DT_RESOURCE)
    if name != "TensorArrayV3":
        definition.attr.add(name="shared_name", type="string")
    return definition


OPS = OpTable(schema.MetaGraphDef(), "model", op_def)


def graph_of(*nodes):
    graph_def = schema.GraphDef()
    for name, op, shared in nodes:
        node = graph_def.node.add(name=name, op=op)
        node.attr["shared_name"].s = shared.encode()
    return Graph(graph_def, "model")


def test_variables_of_one_shared_name_are_one():
    graph = graph_of(("a", "VarHandleOp", "v"), ("b", "VarHandleOp", "v"), ("c", "VarHandleOp", ""))
    merge_by_shared_name(graph, OPS, frozenset())
    assert [graph.nodes[name].op for name in "abc"] == ["VarHandleOp", "Identity", "VarHandleOp"]
    assert list(graph.nodes["b"].input) == ["a"]


def test_tables_are_merged_if_a_function_makes_one():
    nodes = (("a", "HashTableV2", "t"), ("f/b", "HashTableV2", "t"))
    for inlined, op in ((frozenset(), "HashTableV2"), (frozenset({"f/b"}), "Identity")):
        graph = graph_of(*nodes)
        merge_by_shared_name(graph, OPS, inlined)
        assert graph.nodes["f/b"].op == op


def test_another_dtype_is_another_variable():
    graph = graph_of(("a", "VarHandleOp", "v"), ("b", "VarHandleOp", "v"))
    graph.nodes["b"].attr["dtype"].type = schema.DT_INT32
    merge_by_shared_name(graph, OPS, frozenset())
    assert graph.nodes["b"].op == "VarHandleOp"


def test_handles_of_one_call_are_not_shared():
    made = {op: makes_shared_handle(OPS, schema.NodeDef(op=op)) for op in ("HashTableV2", "Queue")}
    assert made == {"HashTableV2": True, "Queue": True}
    assert not makes_shared_handle(OPS, schema.NodeDef(op="TensorArrayV3"))
    assert not makes_shared_handle(OPS, schema.NodeDef(op="VarHandleOp"))
