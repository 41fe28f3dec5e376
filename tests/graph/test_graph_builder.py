"""The builder of a new main graph: names of nodes, attributes."""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.graph.graph_builder import GraphBuilder


def test_names_are_free_whatever_their_case_and_valid_in_cpp():
    builder = GraphBuilder()
    names = [builder.add(name, "NoOp").name for name in ("Read", "read", "a b\\c", "_private")]
    assert names == ["Read", "read_1", "a_b_c", "n_private"]
    assert [node.name for node in builder.graph_def.node] == names


def test_a_node_has_the_attributes_that_are_given():
    builder = GraphBuilder()
    plain = builder.add("plain", "Identity", ["x"])
    assert not plain.attr and list(plain.input) == ["x"]
    text = builder.add_string("path", "Placeholder")
    assert text.attr["dtype"].type == schema.DT_STRING
    assert text.attr["shape"].HasField("shape") and not text.attr["shape"].shape.dim


def test_tensors_of_nodes_are_named_by_the_node():
    builder = GraphBuilder()
    assert builder.constant("c", schema.TensorProto(dtype=schema.DT_INT32)) == "c"
