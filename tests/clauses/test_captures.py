"""Captured state (FN-07): what is stored of it, and what is refused."""

from __future__ import annotations

import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


def test_FN_07_captures_that_cannot_be_reached_are_refused_all_at_once(tf, tmp_path):
    hidden, table = (
        tf.Variable(3.0, name="hidden"),
        tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0),
    )
    root = tf.Module()
    root.child = tf.Module()
    root.child.f = tf.function(
        lambda x: x * hidden, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    root.g = tf.function(lambda: table.size(), input_signature=[])
    only_signature = tf.function(
        lambda x: x + hidden, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    with pytest.raises(errors.UntrackedCaptureError) as caught:
        reference_impl.save(root, tmp_path / "m", {"s": only_signature, "f": root.child.f})
    text = str(caught.value)
    assert "root.child.f" in text and "'hidden:0'" in text
    assert "root.g" in text and "MutableHashTable" in text
    assert (
        "root.signatures['s']" in text
        and "root.signatures['f']" not in text
        and caught.value.clause == "FN-07"
    )
    assert not (tmp_path / "m").exists()


def test_FN_07_the_message_names_the_state_and_says_what_to_write(tf, tmp_path):
    class Plain:
        pass

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.helper = Plain()  # not a trackable, so nothing in it is found
            self.helper.parts = [{"weights": tf.Variable(1.0, name="inner")}]

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x * self.helper.parts[0]["weights"]

    closed_over = Plain()
    closed_over.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    root = Model()
    root.size = tf.function(lambda: closed_over.table.size(), input_signature=[])
    with pytest.raises(errors.UntrackedCaptureError) as caught:
        reference_impl.save(root, tmp_path / "m")
    text = str(caught.value)
    assert "root.__call__" in text and "'inner:0' (float32[])" in text
    assert "root.size captures" in text and "MutableHashTable" in text
    assert "`root.state = variable`" in text
    root.weights, root.table = root.helper.parts[0]["weights"], closed_over.table
    reference_impl.save(root, tmp_path / "m")


def refused(root, path):
    with pytest.raises(errors.UntrackedCaptureError) as caught:
        reference_impl.save(root, path)
    return str(caught.value)


def test_FN_07_tensors_of_another_function_are_refused_with_its_name(tf, both, tmp_path):
    root, scalar = tf.Module(), [tf.TensorSpec([])]

    @tf.function(input_signature=scalar)
    def outer(x):
        computed, known = x * 2.0, tf.constant(4.0)
        root.g = tf.function(lambda z: z * computed, input_signature=scalar)
        root.h = tf.function(lambda z: z * known, input_signature=scalar)
        return root.g(x) + root.h(x)

    outer(tf.constant(1.0))
    text = refused(root, tmp_path / "m")
    assert "root.g captures" in text and "'mul:0'" in text and "'outer'" in text
    assert "an argument" in text and "root.h" not in text
    del root.g  # what is left uses a constant, which has a value
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.h(tf.constant(2.0)).numpy() == 8.0


def test_FN_07_iterators_cannot_be_captured_datasets_can_if_they_are_attributes(tf, both, tmp_path):
    root, dataset = tf.Module(), tf.data.Dataset.range(4)
    iterator = iter(dataset)
    root.f = tf.function(lambda: next(iterator), input_signature=[])
    assert "root.f captures an iterator" in refused(root, tmp_path / "m")
    root = tf.Module()
    root.f = tf.function(
        lambda: dataset.reduce(tf.constant(0, tf.int64), tf.add), input_signature=[]
    )
    text = refused(root, tmp_path / "m")
    assert "root.f captures a dataset" in text
    assert text.count("captures") == 1  # not once more for the signature
    root.dataset = dataset
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.f().numpy() == 6


def test_FN_07_a_capture_of_a_custom_gradient_names_the_function_that_uses_it(tf, tmp_path):
    root, hidden = tf.Module(), tf.Variable(1.0, name="hidden")

    @tf.custom_gradient
    def scaled(x):
        return x * 1.0, lambda dy: dy * hidden

    root.child = tf.Module()
    root.child.f = tf.function(lambda x: scaled(x), input_signature=[tf.TensorSpec([])])
    assert "root.child.f captures the variable 'hidden:0'" in refused(root, tmp_path / "m")


def test_FN_07_captured_constants_are_stored(tf, both, tmp_path):
    constant = tf.constant([5.0])
    root = tf.Module()
    root.f = tf.function(lambda x: x + constant, input_signature=[tf.TensorSpec([1], tf.float32)])
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.f([1.0]).numpy() == [6.0]


def test_FMT_02_captured_constants_and_assets_are_children_of_the_trace_as_tensorflow_has_it(
    tf, tmp_path
):
    (tmp_path / "words.txt").write_text("ant")
    root, constant = tf.Module(), tf.constant([5.0])
    root.v, root.asset = tf.Variable(1.0), tf.saved_model.Asset(str(tmp_path / "words.txt"))
    root.f = tf.function(
        lambda x: (x * root.v + constant, root.asset.asset_path),
        input_signature=[tf.TensorSpec([1])],
    )
    found = []
    for name, save in (("ours", reference_impl.save), ("theirs", tf.saved_model.save)):
        save(root, str(tmp_path / name))
        graph = layout.read(tmp_path / name).meta_graph(None).object_graph_def
        children = {
            child.local_name: graph.nodes[child.node_id] for child in graph.nodes[0].children
        }
        (trace,) = children["f"].children
        captures = graph.nodes[trace.node_id].children
        found.append(
            {child.local_name: graph.nodes[child.node_id].WhichOneof("kind") for child in captures}
        )
    assert found[0] == {"capture_1": "constant", "capture_2": "asset"}
    assert found[1] in (found[0], {})  # TensorFlow 2.12 writes none
