"""Loading into and saving out of a graph of `tf.compat.v1`: what a session finds, and where no session is (COMPAT-01, DR-07)."""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "words.txt"
    path.write_text("ant\nbee\n")
    return path


@pytest.fixture(scope="module")
def make(tf, words):
    """Builds a model where it is called: variables, a table of a file, one with content, a captured constant."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            index = tf.lookup.TextFileIndex
            text = tf.lookup.TextFileInitializer(str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
            self.v = tf.Variable([1.0, 2.0], name="v")
            self.frozen = tf.Variable(3.0, trainable=False, name="frozen")
            self.words = tf.lookup.StaticHashTable(text, -1)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -5)
            self.offset = tf.constant([10.0, 20.0])

        @tf.function(input_signature=[tf.TensorSpec([2], name="x")])
        def scale(self, x):
            return x * self.v + self.frozen + self.offset

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
        def look(self, word):
            return {"id": self.words.lookup(word), "count": self.counts.lookup(word)}

    return Model


@pytest.fixture(scope="module")
def export(tf, make, tmp_path_factory):
    model = make()
    model.counts.insert(tf.constant(["bee"]), tf.constant([7], tf.int64))
    path = tmp_path_factory.mktemp("export") / "m"
    reference_impl.save(model, path, signatures={"scale": model.scale, "look": model.look})
    return path


def collections(tf, fill):
    """Name of each collection that `fill` puts something into -> what the session finds there: names, or how many."""
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        kept = fill(session)  # noqa: F841  variables are taken out of their collections when they die
        found = {str(key): graph.get_collection(key) for key in graph.get_all_collection_keys()}
    initializers = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
    return {
        key: len(items) if key == initializers else sorted(getattr(item, "name", item) for item in items)
        for key, items in found.items()
        if items
    }


def test_DR_07_collections_of_a_graph_are_filled(tf, export):
    """By what `tf.compat.v1` looks for: variables to initialise and to save, tables to fill, assets; nothing to train unasked."""
    found = collections(tf, lambda _: reference_impl.load(export))
    assert found == {
        "variables": ["frozen:0", "v:0"],
        "table_initializer": 2,  # the static table, and the content of the other one
        "asset_filepaths": ["asset_path:0"],
    }
    shipped = collections(tf, lambda _: tf.saved_model.load(str(export)))
    shipped.pop("table_initializer")  # there also what puts nothing into a mutable table
    assert shipped == {key: value for key, value in found.items() if key != "table_initializer"}


def test_DR_07_the_v1_loader_finds_one_collection(tf, export):
    load = lambda session: tf.compat.v1.saved_model.loader.load(session, ["serve"], str(export))  # noqa: E731
    assert collections(tf, load) == {"saved_model_main_op": ["NoOp"]}
