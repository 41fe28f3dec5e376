"""Nodes of TF 1.x graphs that break the rules of their ops: an error of ours for what needs them,
and nothing else is lost.
"""

from __future__ import annotations

import fresh_tensorflow
import model_edits as edits
import pytest
from test_v1_program import BOOL, FLOAT, Builder

from reference_impl.format import schema
from reference_impl.v1.reading.program import Program

LOAD = (
    "import sys, reference_impl, tensorflow as tf\ntry: root ="
    " reference_impl.load(sys.argv[1])\nexcept Exception as error:"
    " sys.exit(print(type(error).__name__, error))\nfor key in sorted(root.signatures):\n   "
    " function = root.signatures[key]\n    given = {name: tf.zeros([1 if size is None else size for"
    " size in spec.shape or ()], spec.dtype)\n             for name, spec in"
    " function.structured_input_signature[1].items()}\n    try: print(key, 'answers',"
    " sorted(function(**given)))\n    except Exception as error: print(key, type(error).__name__,"
    " error)\n"
)


def graph_of(message):
    return message.meta_graphs[0].graph_def


def ops(message, name):
    return [node for node in graph_of(message).node if node.op == name]


def array_of_two_sizes(message):
    for node in ops(message, "TensorArrayV3"):
        node.input.append(node.input[0])


def array_without_a_size(message):
    for node in ops(message, "TensorArrayV3"):
        del node.input[:]


def array_of_no_dtype(message):
    for node in ops(message, "TensorArrayV3"):
        del node.attr["dtype"]


def flow_of_a_number(message):
    for node in ops(message, "TensorArrayReadV3"):
        node.attr["dtype"].i = 7


def loop_in_no_frame(message):
    for node in ops(message, "Enter"):
        del node.attr["frame_name"]


def switch_of_one(message):
    for node in ops(message, "Switch"):
        del node.input[1:]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("fixture", "damage"),
    [
        ("tensor_array", array_of_two_sizes),
        ("tensor_array", array_without_a_size),
        ("tensor_array", array_of_no_dtype),
        ("tensor_array", flow_of_a_number),
        ("while_loop", loop_in_no_frame),
        ("cond_case", switch_of_one),
    ],
)
def test_a_damaged_node_of_old_control_flow_is_named(tmp_path, fixture, damage):
    model = edits.edited(edits.fixture(fixture), tmp_path / "model", damage)
    said = fresh_tensorflow.printed(LOAD, model).splitlines()
    assert said and all(
        line.split()[1] == "MalformedError" and "saved_model.pb" in line for line in said
    ), said


@pytest.mark.tensorflow
def test_a_damaged_node_that_nothing_needs_is_no_error(tmp_path):
    def beside(message):
        graph_of(message).node.add(name="array", op="TensorArrayV3")
        graph_of(message).node.add(name="table", op="MutableHashTableV2").attr[
            "key_dtype"
        ].type = 9999
        graph_of(message).node.add(name="variable", op="VarHandleOp")

    model = edits.edited(edits.fixture("while_loop"), tmp_path / "model", beside)
    whole = fresh_tensorflow.printed(LOAD, edits.fixture("while_loop"))
    assert "answers" in whole and fresh_tensorflow.printed(LOAD, model) == whole


@pytest.mark.tensorflow
def test_a_damaged_node_costs_no_other_signature(tmp_path):
    """One signature needs it; in a graph with reference variables, which are rewritten for all
    signatures together.
    """

    def beside(message):
        node = graph_of(message).node.add(name="odd", op="Neg")
        node.attr["T"].type = schema.DT_FLOAT
        message.meta_graphs[0].signature_def["odd"].outputs["y"].name = "odd:0"

    source = edits.fixture("half_plus_two")
    model = edits.edited(source, tmp_path / "model", beside)
    whole = fresh_tensorflow.printed(LOAD, source).splitlines()
    said = fresh_tensorflow.printed(LOAD, model).splitlines()
    assert [line for line in said if not line.startswith("odd ")] == whole
    assert [line.split()[1] for line in said if line.startswith("odd ")] == ["MalformedError"]


@pytest.mark.tensorflow
def test_a_damaged_function_of_a_library_is_named_when_it_is_called(tmp_path):
    def call(message):
        graph = graph_of(message)
        inner = graph.library.function.add()
        inner.signature.name = "inner"
        inner.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
        inner.node_def.add(name="array", op="TensorArrayV3").attr["dtype"].type = schema.DT_FLOAT
        inner.ret["y"] = "array:flow:0"
        node = graph.node.add(name="call", op="inner")
        message.meta_graphs[0].signature_def["odd"].outputs["y"].name = f"{node.name}:0"

    model = edits.edited(edits.fixture("while_loop"), tmp_path / "model", call)
    said = fresh_tensorflow.printed(LOAD, model).splitlines()
    assert [line.split()[1] for line in said if line.startswith("odd ")] == ["MalformedError"]
    assert len(said) > 1


# Without the rules of a running TensorFlow


def test_an_array_of_two_sizes_stays_an_array():
    build = Builder()
    build._op("TensorArraySizeV3", (), [("size", schema.DT_INT32)])
    build.node("size", "Placeholder", dtype=schema.DT_INT32)
    build.node("array", "TensorArrayV3", "size", "size", dtype=FLOAT)
    build.node("length", "TensorArraySizeV3", "array", "array:1")
    build.signature(inputs={"n": "size:0"}, outputs={"y": "length:0"})
    cut = Program(build.meta_graph, "saved_model.pb", lambda _: None).signature_function(
        "serving_default"
    )
    assert [node.op for node in cut.function.node_def] == ["TensorArrayV3", "TensorArraySizeV3"]


def test_a_reference_that_an_identity_takes_in_second_place_is_read():
    build = Builder()
    build._op("Identity", (), [("output", "T")])
    build.variable()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.node("both", "Identity", "x", "v", T=FLOAT)
    build.signature(inputs={"x": "x:0"}, outputs={"y": "both:0"})
    cut = build.program().signature_function("serving_default")
    assert sorted(node.op for node in cut.function.node_def) == ["Identity", "ReadVariableOp"]


def test_whether_a_variable_is_initialized_is_asked_without_a_dtype():
    """The dtype has a default, which an exporter may leave out."""
    build = Builder()
    build._op("IsVariableInitialized", (), [("is_initialized", BOOL)])
    build.variable()
    build.node("ready", "IsVariableInitialized", "v")
    build.signature(outputs={"y": "ready:0"})
    cut = build.program().signature_function("serving_default")
    assert [node.op for node in cut.function.node_def] == ["VarIsInitializedOp"]
