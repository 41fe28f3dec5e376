"""TF 1.x models with iterators: their datasets are made by functions in attributes."""

from __future__ import annotations

import logging

import pytest
from model_edits import edited, fixture

import reference_impl
from reference_impl.safety.machine_ops import MachineOpError, MachineOpWarning

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("V1-16", "V1-17")]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def elements(tf, root):
    return [float(root.signatures["next"](x=tf.constant([1.0]))["y"][0]) for _ in range(3)]


@pytest.mark.parametrize("reader", ["reference", "tf2", "session"])
def test_a_one_shot_iterator_is_saved_again(tf, tmp_path, reader):
    root = reference_impl.load(fixture("one_shot_iterator"))
    assert elements(tf, root) == [1.0, 11.0, 21.0]
    reference_impl.save(root, tmp_path / "copy")
    if reader != "session":
        load = {"reference": reference_impl.load, "tf2": tf.saved_model.load}[reader]
        assert elements(tf, load(str(tmp_path / "copy"))) == [1.0, 11.0, 21.0]
        return
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(
            session, ["serve"], str(tmp_path / "copy")
        ).signature_def["next"]
        feed = {signature.inputs["x"].name: [1.0]}
        assert [session.run(signature.outputs["y"].name, feed).tolist() for _ in range(3)] == [
            [1.0],
            [11.0],
            [21.0],
        ]


def test_two_loads_have_an_iterator_each(tf):
    one, other = (
        reference_impl.load(fixture("one_shot_iterator")),
        reference_impl.load(fixture("one_shot_iterator")),
    )
    assert elements(tf, one) == elements(tf, other)


def test_a_monitored_session_fills_the_iterator(tf):
    with tf.Graph().as_default():
        y = reference_impl.load(fixture("one_shot_iterator")).signatures["next"](
            x=tf.constant([1.0])
        )["y"]
        with tf.compat.v1.train.MonitoredSession() as session:
            assert [session.run(y).tolist() for _ in range(3)] == [[1.0], [11.0], [21.0]]


def test_a_signature_without_the_iterator_is_loaded_without_it(tf):
    options = reference_impl.LoadOptions(only="signatures.serving_default")
    root = reference_impl.load(fixture("one_shot_iterator"), options=options)
    assert not list(root.resources)
    assert root.signatures["serving_default"](tf.constant([1.0]))["y"].numpy() == [2.0]


def test_an_iterator_in_a_function_keeps_its_own_name(tf, tmp_path):
    """The kernel refuses a shared name, also the one that a load gives to what functions share."""

    @tf.function(autograph=False)
    def dataset():
        return tf.data.experimental.to_variant(tf.data.Dataset.range(5, 9))

    factory = dataset.get_concrete_function()
    kinds = {"output_types": [tf.int64], "output_shapes": [[]]}

    class Model(tf.Module):
        @tf.function(input_signature=[])
        def first(self):
            factory.add_to_graph(tf.compat.v1.get_default_graph())
            iterator = tf.raw_ops.OneShotIterator(dataset_factory=factory, **kinds)
            return tf.raw_ops.IteratorGetNext(iterator=iterator, **kinds)[0]

    reference_impl.save(Model(), tmp_path / "model")
    assert reference_impl.load(tmp_path / "model").first().numpy() == 5


def reading(saved_model):
    """The iterator's dataset is of a file that does not exist."""
    (meta_graph,) = saved_model.meta_graphs
    (function,) = [
        f
        for f in meta_graph.graph_def.library.function
        if f.signature.name.startswith("_make_dataset")
    ]
    pattern = function.node_def.add(name="pattern", op="Const")
    pattern.attr["dtype"].type = 7
    pattern.attr["value"].tensor.dtype = 7
    pattern.attr["value"].tensor.tensor_shape.SetInParent()
    pattern.attr["value"].tensor.string_val.append(b"nowhere.txt")
    read = function.node_def.add(name="read", op="ReadFile", input=["pattern:output:0"])
    (optimize,) = [node for node in function.node_def if node.op == "OptimizeDataset"]
    optimize.input.append("^" + read.name)


def test_a_dataset_that_cannot_be_made_costs_only_its_users(tf, tmp_path, caplog):
    path = edited(fixture("one_shot_iterator"), tmp_path / "model", reading)
    with caplog.at_level(logging.WARNING), pytest.warns(MachineOpWarning, match="ReadFile"):
        root = reference_impl.load(path)
    assert "iterator OneShotIterator" in caplog.text and "nowhere.txt" in caplog.text
    assert root.signatures["serving_default"](tf.constant([1.0]))["y"].numpy() == [2.0]
    with pytest.raises(tf.errors.FailedPreconditionError):
        root.signatures["next"](tf.constant([1.0]))
    with pytest.raises(MachineOpError):
        reference_impl.load(path, options=reference_impl.LoadOptions(machine_ops="refuse"))
