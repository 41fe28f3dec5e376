"""The object graph of a file has one reading, whoever asks: `load`, `inspect`, messages."""

from __future__ import annotations

import model_edits
import numpy as np
import pytest

import reference_impl
from reference_impl.errors import MalformedError, MissingValueError
from reference_impl.format import names, schema

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def trained(tf, tmp_path_factory):
    """A model with two trained variables and the slots of their optimizer, and where it is
    saved.
    """
    root = tf.Module()
    root.a, root.b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([3.0, 5.0], name="b")
    root.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(root.a**2) + tf.reduce_sum(root.b**3)
    root.optimizer.apply_gradients(zip(tape.gradient(loss, [root.a, root.b]), [root.a, root.b]))
    directory = tmp_path_factory.mktemp("trained") / "m"
    reference_impl.save(root, directory)
    return root, directory


def _reverse_slots(message):
    for node in message.meta_graphs[0].object_graph_def.nodes:
        slots = [type(slot).FromString(slot.SerializeToString()) for slot in node.slot_variables]
        del node.slot_variables[:]
        node.slot_variables.extend(reversed(slots))


@pytest.mark.clause("OPT-02")
def test_slots_are_paired_by_variable_and_name_in_whatever_order_they_are_listed(trained, tmp_path):
    root, directory = trained
    turned = model_edits.edited(directory, tmp_path / "turned", _reverse_slots)
    loaded = reference_impl.load(turned)
    for variable in ("a", "b"):
        for slot in ("m", "v"):
            expected = root.optimizer.get_slot(getattr(root, variable), slot).numpy()
            np.testing.assert_array_equal(
                loaded.optimizer.get_slot(getattr(loaded, variable), slot), expected
            )
    graph = reference_impl.inspect(turned).meta_graphs[0]
    (optimizer,) = [item for item in graph.objects if "slots" in item.details]
    found = {
        (graph.objects[slot["variable"]].path, slot["name"]): slot["slot"]
        for slot in optimizer.details["slots"]
    }
    keys = {
        pair: graph.objects[slot].details["checkpoint_keys"][names.VALUE]
        for pair, slot in found.items()
    }
    assert keys == {
        (variable, slot): f"{variable}/.OPTIMIZER_SLOT/optimizer/{slot}/.ATTRIBUTES/VARIABLE_VALUE"
        for variable in ("a", "b")
        for slot in ("m", "v")
    }


def _empty(message):
    graph = message.meta_graphs[0].object_graph_def
    graph.Clear()
    graph.SetInParent()


def test_an_empty_object_graph_is_malformed(trained, tmp_path):
    path = model_edits.edited(trained[1], tmp_path / "empty", _empty)
    with pytest.raises(MalformedError, match="object graph"):
        reference_impl.load(path)
    assert reference_impl.inspect(path).meta_graphs[0].objects == ()


def test_an_empty_object_graph_in_the_checkpoint_has_no_values(trained, tmp_path):
    def emptied(key, array):
        return (
            np.array(schema.TrackableObjectGraph().SerializeToString(), object)
            if key == names.OBJECT_GRAPH_KEY
            else array
        )

    path = model_edits.edited(trained[1], tmp_path / "empty", lambda message: None)
    model_edits.copy_checkpoint(path, emptied)
    with pytest.raises(MissingValueError, match=r"root\.\w+"):
        reference_impl.load(path)
    assert all(
        variable.key is None for variable in reference_impl.inspect(path).meta_graphs[0].variables
    )


@pytest.mark.parametrize(
    ("name", "plain", "stem"),
    [
        ("__inference_f_1_2", "f_1", "f_1"),
        ("__inference___backward_f_1_2_3", "f_1", "f_1"),
        ("cond_true_7", "cond_true_7", "cond_true"),
        ("f", "f", "f"),
        ("__inference__3", "__inference__3", "__inference_"),
    ],
)
def test_a_generated_name_has_one_plain_name(name, plain, stem):
    assert (names.plain_name(name), names.base_name(name)) == (plain, stem)


def test_a_function_keeps_its_name_through_saves(tf, tmp_path):
    """`f_1` is a name that a user gave, its number is none of TensorFlow's."""
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([])])
    def f_1(x):
        return tf.cond(x > 0.0, lambda: x, lambda: -x)

    root.f = f_1
    for generation in ("first", "second"):
        reference_impl.save(root, tmp_path / generation)
        root = reference_impl.load(tmp_path / generation)
        written = reference_impl.inspect(tmp_path / generation).meta_graphs[0].functions
        assert {
            names.plain_name(trace.name) for function in written for trace in function.traces
        } >= {"f_1"}
