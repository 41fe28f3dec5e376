"""Clauses PRIM-*: what an attribute is after loading."""

from __future__ import annotations

import collections

import clause_errors
import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow

Pair = collections.namedtuple("Pair", ["left", "right"])


@pytest.fixture(scope="module")
def model(tf, tmp_path_factory):
    """The example of the RFC (a text embedding) with one attribute of every kind."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "vocabulary.txt").write_text("hello\nworld\n")

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            initializer = tf.lookup.TextFileInitializer(
                str(folder / "vocabulary.txt"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
            )  # fmt: skip
            self.table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=1)
            self.embeddings = tf.Variable(tf.reshape(tf.range(192.0), [3, 64]), name="embeddings")

        def tokenize(self, sentences):
            return tf.ragged.map_flat_values(self.table.lookup, tf.strings.split(sentences))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def embed(self, sentences):
            return tf.reduce_sum(tf.gather(self.embeddings, self.tokenize(sentences)), axis=1)

    root = Model()
    root.loose = tf.Variable([1.0], shape=[None], trainable=False, name="loose")
    root.part = tf.train.Checkpoint(v=tf.Variable(3.0))
    root.function = tf.function(lambda x: x * root.part.v)
    root.function(tf.constant(1.0))
    root.concrete = root.function.get_concrete_function(tf.constant(1.0))
    root.variables_listed = [tf.Variable(1.0), tf.Variable(2.0)]
    root.nest = {
        "list": [tf.Variable(4.0), {"deep": tf.Variable(5.0)}],
        "tuple": (root.loose, root.part),
    }
    root.pair = Pair(root.loose, (root.part,))
    return root


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """The export somewhere else, with the file of the vocabulary gone."""
    directory = tmp_path_factory.mktemp("first") / "model"
    reference_impl.save(model, directory)
    moved = tmp_path_factory.mktemp("second") / "moved"
    directory.rename(moved)
    return moved


@pytest.fixture
def loaded(saved, both):
    return both(saved)


def test_PRIM_01_a_variable_is_a_variable(tf, loaded):
    for root in loaded:
        assert (
            isinstance(root.loose, tf.Variable)
            and root.loose.name == "loose:0"
            and not root.loose.trainable
        )
        assert root.loose.shape.as_list() == [None] and root.loose.dtype == tf.float32
        np.testing.assert_array_equal(root.loose, [1.0])
        root.loose.assign([1.0, 2.0])


def test_PRIM_02_an_object_is_a_generic_trackable(tf, loaded):
    for root in loaded:
        assert not isinstance(root.part, tf.train.Checkpoint)
        assert root.part.v.numpy() == 3.0
        tf.train.Checkpoint(part=root.part)  # takes trackables only


def test_PRIM_03_functions_are_polymorphic_and_concrete_functions(tf, loaded):
    for root in loaded:
        assert isinstance(root.function, tf.types.experimental.GenericFunction)
        assert isinstance(root.concrete, tf.types.experimental.ConcreteFunction)
        assert (
            root.function(tf.constant(2.0)).numpy()
            == root.concrete(tf.constant(2.0)).numpy()
            == 6.0
        )


def test_PRIM_04_a_table_is_a_resource(tf, loaded):
    for root in loaded:
        assert isinstance(
            root.table._table if hasattr(root.table, "_table") else root.table,
            tf.saved_model.experimental.TrackableResource,
        )
        assert not hasattr(root.table, "lookup")


def test_PRIM_05_a_list_of_variables_is_a_list_of_variables(tf, saved, both, tmp_path):
    root = reference_impl.load(saved)
    assert isinstance(root.variables_listed, list)
    assert [variable.numpy() for variable in root.variables_listed] == [1.0, 2.0]
    root.variables_listed.append(tf.Variable(3.0))
    reference_impl.save(root, tmp_path / "again")
    for again in both(tmp_path / "again"):
        assert [variable.numpy() for variable in again.variables_listed] == [1.0, 2.0, 3.0]


def test_PRIM_06_nests_keep_their_types(saved, both, tmp_path):
    reference_impl.save(reference_impl.load(saved), tmp_path / "again")
    for directory in (saved, tmp_path / "again"):
        for root in both(directory):
            assert (
                root.nest["list"][0].numpy() == 4.0 and root.nest["list"][1]["deep"].numpy() == 5.0
            )
            assert root.nest["tuple"][1] is root.part and root.pair[1][0] is root.part
        root = reference_impl.load(directory)  # the types are ours alone
        assert isinstance(root.nest["tuple"], tuple) and isinstance(root.pair[1], tuple)
        assert root.pair._fields == ("left", "right") and root.pair.left is root.loose


@pytest.mark.parametrize("make, named", [
    (lambda tf: {"kept": tf.Variable(1.0), "lost": 5}, "root.held['lost']"),
    (lambda tf: [tf.Variable(1.0), "text"], "root.held[1]"),
    (lambda tf: (tf.Variable(1.0), object()), "root.held[1]"),
    (lambda tf: {"deep": [{"kept": tf.Variable(1.0), "lost": {1, 2}}]}, "root.held['deep'][0]['lost']"),
    (lambda tf: {1: tf.Variable(1.0)}, "root.held"),
])  # fmt: skip
def test_PRIM_06_what_a_container_would_lose_is_named(tf, tmp_path, make, named):
    root = tf.Module()
    root.held = make(tf)
    with pytest.raises(errors.SaveError) as caught:
        reference_impl.save(root, tmp_path / "m")
    assert named in str(caught.value) and caught.value.clause == "PRIM-06"
    assert not (tmp_path / "m").exists()


def test_PRIM_06_and_FN_14_containers_of_python_values_are_python_values(tf, both, tmp_path):
    root = tf.Module()
    root.sizes, root.settings, root.pair = (
        [1, 2],
        {"name": "x", "deep": {"list": [[], 3.0]}},
        (1, "a"),
    )
    root.keyed = {1: "text is no key"}
    root.empty, root.held = [[], {}], [tf.Variable(1.0), [], None, tf.Variable(2.0)]
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert not [
            name for name in ("sizes", "settings", "pair", "keyed") if hasattr(loaded, name)
        ]
        assert (
            loaded.empty == [[], {}]
            and loaded.held[1:3] == [[], None]
            and loaded.held[3].numpy() == 2.0
        )


def test_PRIM_06_without_strict_the_loss_is_a_warning(tf, both, tmp_path):
    root = tf.Module()
    root.held = [tf.Variable(1.0), "lost", tf.Variable(2.0)]
    with pytest.warns(UserWarning, match=r"root\.held\[1\]"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    for loaded in both(tmp_path / "m"):
        assert loaded.held[1] is None and loaded.held[2].numpy() == 2.0


def test_PRIM_07_a_table_brings_its_file(saved):
    assert [path.name for path in (saved / "assets").iterdir()] == ["vocabulary.txt"]
    assert (saved / "assets/vocabulary.txt").read_text() == "hello\nworld\n"


def test_PRIM_08_and_PRIM_09_resources_are_ready_and_lists_of_text_are_taken(model, loaded):
    sentences = ["hello world", "hello unheard of"]
    for root in loaded:
        np.testing.assert_array_equal(root.embed(sentences), model.embed(sentences))
        assert root.embed(["hello world"]).shape == (1, 64)


def test_PRIM_10_undecorated_methods_are_absent(loaded):
    for root in loaded:
        assert not hasattr(root, "tokenize") and callable(root.embed)


def test_PRIM_06_what_keras_keeps_for_itself_is_no_loss(tf, tmp_path):
    """A model of Keras 3 lists its operations, of which those of keras.ops are not trackable; they
    are in its functions.
    """
    keras = pytest.importorskip("keras", "3")
    inputs = keras.Input([4])
    model = keras.Model(inputs, keras.ops.relu(inputs + keras.layers.Dense(4)(inputs)))
    model.serve = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 4])])
    reference_impl.save(model, tmp_path / "keras")
    x = tf.constant([[1.0, -2.0, 3.0, -4.0]])
    assert (
        reference_impl.load(tmp_path / "keras").serve(x).numpy() == model.serve(x).numpy()
    ).all()
    root = tf.Module()
    root._private = [tf.Variable(1.0), object()]
    with clause_errors.raises(errors.SaveError, "PRIM-06", match=r"root\._private\[1\]"):
        reference_impl.save(root, tmp_path / "private")


def test_PRIM_06_layers_in_containers_of_a_keras_model(tf, tmp_path):
    """Keras 3 has lists and dicts of its own for them, and gives plain ones when it is asked for
    its dependencies.
    """
    keras = pytest.importorskip("keras", "3")

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [keras.layers.Dense(2), [keras.layers.Dense(3)]]
            self.by = {"out": keras.layers.Dense(1)}
            self.pair = (keras.layers.Dense(1),)
            self.units = [2, 3]

        def call(self, x):
            return self.pair[0](self.by["out"](self.blocks[1][0](self.blocks[0](x))))

    model, x = Model(), tf.constant([[1.0, 2.0]])
    expected = model(x)
    model.serve = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 2])])
    reference_impl.save(model, tmp_path / "m")
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "m"))
        assert (loaded.serve(x).numpy() == expected.numpy()).all()
        assert (loaded.blocks[1][0]._kernel.numpy() == model.blocks[1][0].kernel.numpy()).all()
        assert loaded.by["out"]._kernel.shape == [3, 1] and loaded.pair[0]._kernel.shape == [1, 1]
