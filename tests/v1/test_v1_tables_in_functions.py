"""TF 1.x models whose functions make tables: the tables are found, saved again, or refused by
name.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from model_edits import edited

import reference_impl
from reference_impl import errors

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("V1-17")]

FIXTURE = Path(__file__).parents[2] / "fixtures_v1" / "table_in_function" / "model"


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def in_session(tf, path, key, **inputs):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(path)).signature_def[key]
        feeds = {signature.inputs[name].name: value for name, value in inputs.items()}
        return session.run({name: info.name for name, info in signature.outputs.items()}, feeds)


def answers_of(root, tf):
    ids = root.signatures["serving_default"](words=tf.constant(["two", "three"]))["ids"]
    weights = root.signatures["weigh"](numbers=tf.constant([2, 7], tf.int64))["weights"]
    return ids.numpy().tolist(), weights.numpy().tolist()


@pytest.mark.parametrize("reader", ["reference", "tf2", "session"])
def test_tables_made_in_functions_are_saved_again(tf, tmp_path, reader):
    root = reference_impl.load(FIXTURE)
    assert len(root.resources) == 2
    reference_impl.save(root, tmp_path / "copy")
    if reader == "session":
        ids = in_session(tf, tmp_path / "copy", "serving_default", words=["two", "three"])["ids"]
        weights = in_session(tf, tmp_path / "copy", "weigh", numbers=[2, 7])["weights"]
        assert (ids.tolist(), weights.tolist()) == ([2, -1], [0.25, -1.0])
    else:
        load = {"reference": reference_impl.load, "tf2": tf.saved_model.load}[reader]
        assert answers_of(load(str(tmp_path / "copy")), tf) == ([2, -1], [0.25, -1.0])


@pytest.mark.parametrize(("key", "result"), [("serving_default", "ids"), ("weigh", "weights")])
def test_only_the_tables_of_a_signature_are_made_and_filled(tf, key, result):
    root = reference_impl.load(
        FIXTURE, options=reference_impl.LoadOptions(only=f"signatures.{key}")
    )
    assert len(root.resources) == 1
    given = tf.constant([b"two"]) if key == "serving_default" else tf.constant([2], tf.int64)
    assert root.signatures[key](given)[result].numpy() == [2 if key == "serving_default" else 0.25]


def model_with(tf, path, lookup, fill):
    """A TF 1.x model: `lookup(handle maker, words)` is its signature, `fill(handle maker)` its init
    op.
    """

    def handle():
        return tf.raw_ops.HashTableV2(
            shared_name="hidden_words", key_dtype=tf.string, value_dtype=tf.int64
        )

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        words = v1.placeholder(tf.string, [None], "words")
        found = lookup(handle, words)
        init = fill(handle)
        v1.saved_model.simple_save(
            session, str(path), {"words": words}, {"ids": found}, legacy_init_op=init
        )


def find(tf, handle, words):
    return tf.raw_ops.LookupTableFindV2(
        table_handle=handle, keys=words, default_value=tf.constant(-1, tf.int64)
    )


def initialize(tf, handle):
    keys, values = tf.constant(["one", "two"]), tf.constant([1, 2], tf.int64)
    return tf.raw_ops.InitializeTableV2(table_handle=handle, keys=keys, values=values)


def in_branch(tf):
    """A table that only the branch of a condition names, and only the init op fills."""

    def lookup(handle, words):
        return tf.function(
            lambda w: tf.cond(
                tf.size(w) > 0, lambda: find(tf, handle(), w), lambda: tf.zeros([0], tf.int64)
            ),
            autograph=False,
        )(words)

    def fill(handle):
        @tf.function
        def filled():
            initialize(tf, handle())
            return tf.constant(1)

        return tf.group(tf.cond(tf.constant(True), filled, lambda: tf.constant(0)))

    return lookup, fill


def test_a_table_that_no_object_can_hold_is_refused(tf, tmp_path):
    model_with(tf, tmp_path / "model", *in_branch(tf))
    root = reference_impl.load(tmp_path / "model")
    assert root.signatures["serving_default"](words=tf.constant(["two"]))["ids"].numpy() == [2]
    with pytest.raises(errors.SaveError, match=r"HashTableV2: .* \d variables") as caught:
        reference_impl.save(root, tmp_path / "copy")
    assert caught.value.clause == "V1-17"
    with pytest.warns(UserWarning, match="left out"):
        reference_impl.save(
            root, tmp_path / "copy", options=reference_impl.SaveOptions(strict=False)
        )


def test_a_function_that_fills_its_own_table_is_saved(tf, tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def f(self, words):
            table = tf.raw_ops.HashTableV2(
                shared_name="own_words", key_dtype=tf.string, value_dtype=tf.int64
            )
            keys, values = tf.constant(["one", "two"]), tf.constant([1, 2], tf.int64)
            tf.raw_ops.InitializeTableV2(table_handle=table, keys=keys, values=values)
            return find(tf, table, words)

    reference_impl.save(Model(), tmp_path / "model")
    assert reference_impl.load(tmp_path / "model").f(tf.constant(["two"])).numpy() == [2]


def test_nested_calls_with_several_results_are_followed(tf, tmp_path):
    """Two tables come out of one call of a call, beside a tensor."""
    raw, v1 = tf.raw_ops, tf.compat.v1

    def table(name):
        return raw.HashTableV2(shared_name=name, key_dtype=tf.string, value_dtype=tf.int64)

    @tf.function
    def inner():
        return table("first_words"), tf.constant(7, tf.int64), table("second_words")

    @tf.function
    def outer(bias):
        first, seven, second = inner()
        return second, seven + bias, first

    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        words = v1.placeholder(tf.string, [None], "words")
        second, eight, first = outer(tf.constant(1, tf.int64))
        init = tf.group(initialize(tf, first))
        with graph.control_dependencies([init]):
            keys, values = tf.constant(["two", "three"]), tf.constant([20, 30], tf.int64)
            init = tf.group(raw.InitializeTableV2(table_handle=second, keys=keys, values=values))
        outputs = {"first": find(tf, first, words) + eight, "second": find(tf, second, words)}
        v1.saved_model.simple_save(
            session, str(tmp_path / "model"), {"words": words}, outputs, legacy_init_op=init
        )
    expected = {"first": [10, 7], "second": [20, 30]}
    reference_impl.save(reference_impl.load(tmp_path / "model"), tmp_path / "copy")
    for load in (reference_impl.load, tf.saved_model.load):
        found = load(str(tmp_path / "copy")).signatures["serving_default"](
            words=tf.constant(["two", "three"])
        )
        assert {key: value.numpy().tolist() for key, value in found.items()} == expected


def rewrite_without(tf, folder, name):
    """Leave a variable out of a checkpoint."""
    reader = tf.train.load_checkpoint(str(folder / "variables"))
    kept = [key for key in sorted(reader.get_variable_to_dtype_map()) if name not in key]
    values = [tf.constant(reader.get_tensor(key)) for key in kept]
    shutil.rmtree(folder)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "variables"),
        tensor_names=kept,
        shape_and_slices=[""] * len(kept),
        tensors=values,
    )


@pytest.mark.parametrize("partial", [False, True])
def test_tables_of_a_tf2_graph_without_objects_are_found(tf, tmp_path, partial):
    """What a session of TF 1.15 makes of a TF 2 model: each table is created, filled and restored
    by functions.
    """

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(3, dtype=tf.int64)
            self.static = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["one"], tf.constant([1], tf.int64)), -1
            )
            self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.mutable.insert(tf.constant(["two"]), tf.constant([2], tf.int64))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def look(self, words):
            return {
                "static": self.scale * self.static.lookup(words),
                "mutable": self.mutable.lookup(words),
            }

    model = Model()
    tf.saved_model.save(model, str(tmp_path / "tf2"), signatures=model.look)
    (tmp_path / "tf2" / "fingerprint.pb").unlink(missing_ok=True)
    path = edited(
        tmp_path / "tf2",
        tmp_path / "model",
        lambda message: message.meta_graphs[0].ClearField("object_graph_def"),
    )
    root = reference_impl.load(
        path, options=reference_impl.LoadOptions(allow_partial_checkpoint=partial)
    )
    assert len(root.resources) == 2
    reference_impl.save(root, tmp_path / "copy")
    for loaded in (
        root,
        reference_impl.load(tmp_path / "copy"),
        tf.saved_model.load(str(tmp_path / "copy")),
    ):
        found = loaded.signatures["serving_default"](words=tf.constant(["one", "two"]))
        assert {key: value.numpy().tolist() for key, value in found.items()} == {
            "static": [3, -3],
            "mutable": [-1, 2],
        }
    rewrite_without(tf, path / "variables", "scale")
    refused = errors.UnsupportedModelError if partial else tf.errors.NotFoundError
    with pytest.raises(refused, match="scale"):
        reference_impl.load(
            path, options=reference_impl.LoadOptions(allow_partial_checkpoint=partial)
        )
