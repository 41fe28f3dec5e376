"""SignatureDefs of TF 1.x models that contradict the graph: the graph is followed, and the
SignatureDef is named as wrong.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest
from model_edits import edited, fixture

import reference_impl
from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.format.container import layout

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("V1-01")]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def with_signature(case, tmp_path, change, key="serving_default"):
    """A copy of a fixture one of whose SignatureDefs is changed."""
    return edited(
        fixture(case),
        tmp_path / "model",
        lambda model: change(model.meta_graphs[0].signature_def[key]),
    )


def test_a_false_dtype_of_an_input_gives_way_to_the_graph(tf, tmp_path, caplog):
    def lie(signature):
        signature.inputs["words"].dtype = schema.DT_FLOAT

    path = with_signature("hash_table_v2", tmp_path, lie)
    with caplog.at_level(logging.WARNING):
        root = reference_impl.load(path)
    (said,) = [record.getMessage() for record in caplog.records]
    assert str(path) in said and "input 'words'" in said and "float32[?]" in said
    assert "the tensor 'words'" in said and "string[?]" in said
    reference_impl.save(root, tmp_path / "copy")
    assert (
        layout.read(tmp_path / "copy")
        .meta_graph(None)
        .signature_def["serving_default"]
        .inputs["words"]
        .dtype
        == schema.DT_STRING
    )
    for loaded in (root, tf.saved_model.load(str(tmp_path / "copy"))):
        assert loaded.signatures["serving_default"](tf.constant(["two"]))["ids"].numpy() == [2]


def test_a_false_dtype_of_a_result_gives_way_to_the_graph(tmp_path, caplog):
    def lie(signature):
        signature.outputs["ids"].dtype = schema.DT_STRING

    root = reference_impl.load(with_signature("hash_table_v2", tmp_path, lie))
    assert (
        "output 'ids'" in caplog.text
        and "string[?]" in caplog.text
        and "is int64[?]" in caplog.text
    )
    assert root.signatures["serving_default"].structured_outputs["ids"].dtype.name == "int64"


def test_a_false_shape_gives_way_to_that_of_the_placeholder(tf, tmp_path, caplog):
    def lie(signature):
        signature.inputs["words"].tensor_shape.dim.add(size=7)

    root = reference_impl.load(with_signature("hash_table_v2", tmp_path, lie))
    assert "SignatureDef says string[?,7]" in caplog.text
    assert "the tensor 'words'" in caplog.text
    assert root.signatures["serving_default"].structured_input_signature[1][
        "words"
    ].shape.as_list() == [None]
    assert root.signatures["serving_default"](tf.constant(["two"]))["ids"].numpy() == [2]


def test_a_more_exact_shape_is_no_contradiction(tmp_path, caplog):
    def narrow(signature):
        signature.inputs["words"].tensor_shape.dim[0].size = 3

    reference_impl.load(with_signature("hash_table_v2", tmp_path, narrow))
    assert not caplog.records


def test_false_values_of_a_sparse_input_give_way_to_the_graph(tf, tmp_path, caplog):
    source = fixture("sparse_io")
    signature = layout.read(source).meta_graph(["serve"]).signature_def["serving_default"]
    name, *_ = [
        key for key, info in signature.inputs.items() if info.WhichOneof("encoding") == "coo_sparse"
    ]

    def lie(signature):
        signature.inputs[name].dtype = schema.DT_STRING

    root = reference_impl.load(with_signature("sparse_io", tmp_path, lie))
    expected = (
        reference_impl.load(source).signatures["serving_default"].structured_input_signature[1]
    )
    found = root.signatures["serving_default"].structured_input_signature[1]
    assert f"input '{name}_values': " in caplog.text
    assert {key: spec.dtype for key, spec in found.items()} == {
        key: spec.dtype for key, spec in expected.items()
    }


@pytest.mark.parametrize("tensor", ["nowhere:0", "words:3", ""])
def test_an_input_that_does_not_exist_costs_its_signature(tmp_path, tensor):
    def lie(signature):
        signature.inputs["words"].name = tensor
        for key in ("ids", "weights"):
            del signature.outputs[key]

    root = reference_impl.load(with_signature("hash_table_v2", tmp_path, lie))
    with pytest.raises(MalformedError, match=r"input 'words' .*graph") as caught:
        root.signatures["serving_default"](words=np.array(["two"]))
    assert caught.value.node == "serving_default"


def test_no_fixture_contradicts_itself(caplog):
    for case in (
        "estimator_dnn_classifier",
        "sparse_io",
        "ragged_io",
        "dtypes_io",
        "reference_outputs",
        "legacy_names",
    ):
        reference_impl.load(fixture(case))
    assert not [record for record in caplog.records if "SignatureDef" in record.getMessage()]


@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize(
    "node", ["y", "nothing"], ids=["a node with an output", "a node without outputs"]
)
def test_a_control_edge_in_a_signature_is_no_tensor_and_spares_the_others(tf, tmp_path, side, node):
    def edit(message):
        graph = message.meta_graphs[0]
        graph.graph_def.node.add(name="nothing", op="NoOp")
        graph.signature_def["good"].CopyFrom(graph.signature_def["serving_default"])
        for info in getattr(graph.signature_def["serving_default"], side).values():
            info.name = f"^{node}"

    root = reference_impl.load(edited(fixture("simple_save"), tmp_path / "model", edit))
    given = {
        name: tf.ones(spec.shape.as_list()[1:])[None]
        for name, spec in wanted(root.signatures["good"]).items()
    }
    assert root.signatures["good"](**given)["y"].shape == (1, 2)
    with pytest.raises(MalformedError, match=rf"\^{node}"):
        root.signatures["serving_default"](**given)


def wanted(signature):
    return signature.structured_input_signature[1]


def test_components_of_components_of_a_result_are_its_tensors_in_order(tf, tmp_path):
    def nest(signature):
        for info in signature.outputs.values():
            if info.WhichOneof("encoding") == "composite_tensor":
                inner = schema.TensorInfo()
                inner.CopyFrom(info)
                del info.composite_tensor.components[:]
                info.composite_tensor.components.add().CopyFrom(inner)

    answers = []
    for path in (fixture("ragged_io"), with_signature("ragged_io", tmp_path, nest)):
        signature = reference_impl.load(path).signatures["serving_default"]
        rows = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
        answers.append(
            signature(r_component_0=rows.values, r_component_1=rows.row_splits)["doubled"]
        )
    assert isinstance(answers[1], tf.RaggedTensor) and answers[0].to_list() == answers[1].to_list()


@pytest.mark.clause("V1-16")
def test_components_of_components_of_an_input_are_saved_as_such(tf, tmp_path):
    def nest(signature):
        first = signature.inputs["r"].composite_tensor.components[0]
        name, dtype = first.name, first.dtype
        first.ClearField("name")
        first.composite_tensor.components.add(name=name, dtype=dtype).tensor_shape.CopyFrom(
            first.tensor_shape
        )

    def names(path):
        info = layout.read(path).meta_graph(["serve"]).signature_def["serving_default"].inputs["r"]
        (inner,) = info.composite_tensor.components[0].composite_tensor.components
        return [inner.name, info.composite_tensor.components[1].name]

    source = with_signature("ragged_io", tmp_path, nest)
    assert len(names(source)) == 2
    reference_impl.save(reference_impl.load(source), tmp_path / "again")
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "again"))
        fed = dict(zip(names(tmp_path / "again"), ([1.0, 2.0, 3.0], [0, 2, 2, 3])))
        doubled = [
            component.name
            for component in loaded.signature_def["serving_default"]
            .outputs["doubled"]
            .composite_tensor.components
        ]
        values, splits = session.run(
            doubled, {graph.get_tensor_by_name(name): value for name, value in fed.items()}
        )
    assert values.tolist() == [2.0, 4.0, 6.0] and splits.tolist() == [0, 2, 2, 3]


def test_a_composite_result_without_its_tensors_spares_the_other_signatures(tf, tmp_path):
    def lose(signature):
        for info in signature.outputs.values():
            for component in info.composite_tensor.components:
                component.name = "lost:0"

    root = reference_impl.load(with_signature("ragged_io", tmp_path, lose))
    assert isinstance(
        root.signatures["serving_default"].structured_outputs["doubled"], tf.RaggedTensorSpec
    )
    with pytest.raises(MalformedError, match="lost"):
        root.signatures["serving_default"]()
    assert root.signatures["ranges"].structured_outputs


def test_an_input_without_a_dtype_and_a_tensor_spares_the_other_signatures(tmp_path):
    def lose(signature):
        for info in signature.inputs.values():
            info.name, info.dtype = "lost:0", schema.DT_INVALID

    root = reference_impl.load(with_signature("ragged_io", tmp_path, lose))
    with pytest.raises(reference_impl.errors.SavedModelError):
        root.signatures["serving_default"]()
    assert root.signatures["ranges"].structured_outputs


def asset_without_a_tensor(graph):
    graph.graph_def.node.add(name="nothing", op="NoOp")
    graph.asset_file_def.add(filename="x.txt").tensor_info.name = "nothing:0"
    user = next(node for node in graph.graph_def.node if node.name == "y")
    user.input[0] = "nothing:0"


def variables_without_handles(graph):
    graph.meta_info_def.stripped_op_list.op.add(name="VarHandleOp")


@pytest.mark.parametrize("lie", [asset_without_a_tensor, variables_without_handles])
def test_state_without_an_output_is_malformed(tf, tmp_path, lie):
    """The file decides what an op puts out, if its MetaGraph describes the op, and which tensor
    stands for an asset.
    """
    path = edited(
        fixture("simple_save"), tmp_path / "model", lambda model: lie(model.meta_graphs[0])
    )
    with pytest.raises(MalformedError, match=r"output 0 of .* it has 0"):
        reference_impl.load(path).signatures["serving_default"](x=tf.ones([1, 3]))


def test_a_false_shape_of_a_result_gives_way_to_the_graph(tf, tmp_path, caplog):
    """TensorFlow loads no model that states another shape of a result than its graph has, so a copy
    must not.
    """
    root = reference_impl.load(fixture("false_output_shape"))
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    serve = root.signatures["serving_default"]
    assert serve(x=x)["y"].shape == [2, 3]
    with tf.GradientTape() as tape:
        tape.watch(x)
        answer = serve(x=x)["y"]
    np.testing.assert_array_equal(tape.gradient(answer, x), np.ones([2, 3]))
    assert tf.function(lambda x: serve(x=x)["y"])(x).shape == [2, 3]

    reference_impl.save(root, tmp_path / "again")
    assert "(4,)" in caplog.text and "'y'" in caplog.text and "(2, 3)" in caplog.text
    caplog.clear()
    for load in (tf.saved_model.load, reference_impl.load):
        again = load(str(tmp_path / "again")).signatures["serving_default"]
        assert again(x=x)["y"].shape == again.structured_outputs["y"].shape == [2, 3]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = tf.compat.v1.saved_model.load(
            session, ["serve"], str(tmp_path / "again")
        ).signature_def["serving_default"]
        answer = session.run(found.outputs["y"].name, {found.inputs["x"].name: x.numpy()})
    np.testing.assert_array_equal(answer, x + 1.0)


def test_a_more_exact_shape_of_a_result_is_kept(tf, tmp_path, caplog):
    def exact(signature):
        signature.outputs["y"].tensor_shape.dim[0].size = 3

    path = with_signature("half_plus_two", tmp_path, exact)
    reference_impl.save(reference_impl.load(path), tmp_path / "again")
    (meta_graph,) = layout.read(tmp_path / "again").saved_model.meta_graphs
    assert [
        dim.size
        for dim in meta_graph.signature_def["serving_default"].outputs["y"].tensor_shape.dim
    ] == [3, 1]
    assert not caplog.records
