"""Every builder adds nodes in the same way; only the names of their tensors differ."""

from __future__ import annotations

import pytest

from reference_impl.format import schema
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.graph.node_builder import NodeBuilder
from reference_impl.graph.node_defs import int_tensor
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.v1.reading.control_flow.editable_function import EditableFunction


def editable() -> EditableFunction:
    definition = schema.FunctionDef()
    definition.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
    return EditableFunction(definition, OpTable(schema.MetaGraphDef(), "f", lambda _: None))


BUILDERS = {
    "a new function": (FunctionBuilder, "Const:output:0"),
    "control flow of TF 1.x": (editable, "Const:output:0"),
    "a main graph": (lambda: Graph(schema.GraphDef(), "model"), "Const"),
}


@pytest.mark.parametrize("kind", BUILDERS)
def test_names_inputs_and_texts(kind):
    make, text = BUILDERS[kind]
    builder = make()
    assert builder.constant("Const", int_tensor(1)) == text
    one = builder.node("Add", "AddV2", [text, text], ["Const"])
    assert (one.name, one.op, list(one.input)) == ("Add", "AddV2", [text, text, "^Const"])
    assert builder.identity("Add", text, schema.DT_INT32).name == "Add_1"
    call = builder.call(None, "f", schema.OpDef(name="f", is_stateful=True), [text])
    assert (call.name, call.op) == ("StatefulPartitionedCall", "StatefulPartitionedCall")


def test_nodes_go_where_the_builder_says():
    function, graph, control_flow = FunctionBuilder(), Graph(schema.GraphDef(), "model"), editable()
    for builder in (function, graph, control_flow):
        builder.node("a", "NoOp")
    control_flow.store()
    assert [node.name for node in function.function.node_def] == ["a"]
    assert [node.name for node in graph.graph_def.node] == ["a"]
    assert [node.name for node in control_flow.definition.node_def] == ["a"]


def test_control_flow_does_not_wait_for_arguments():
    assert list(editable().node("a", "NoOp", (), ["x", "b", "b"]).input) == ["^b"]


def test_a_builder_must_say_where_its_nodes_go():
    with pytest.raises(NotImplementedError):
        NodeBuilder(UniqueNames()).node("a", "NoOp")
