"""Loading into and saving out of a graph of `tf.compat.v1`: what a session finds, and where no
session is (COMPAT-01, DR-07).
"""

from __future__ import annotations

import numpy as np
import pytest
from model_edits import differences

import reference_impl
from reference_impl.errors import SaveError
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "words.txt"
    path.write_text("ant\nbee\n")
    return path


@pytest.fixture(scope="module")
def make(tf, words):
    """Builds a model where it is called: variables, a table of a file, one with content, a captured
    constant.
    """

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            index = tf.lookup.TextFileIndex
            text = tf.lookup.TextFileInitializer(
                str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
            )
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
    """Name of each collection that `fill` puts something into -> what the session finds there:
    names, or how many.
    """
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        kept = fill(session)  # noqa: F841  variables are taken out of their collections when they die
        found = {str(key): graph.get_collection(key) for key in graph.get_all_collection_keys()}
    initializers = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
    return {
        key: (
            len(items)
            if key == initializers
            else sorted(getattr(item, "name", item) for item in items)
        )
        for key, items in found.items()
        if items
    }


def test_DR_07_collections_of_a_graph_are_filled(tf, export):
    """By what `tf.compat.v1` looks for: variables to initialise and to save, tables to fill,
    assets; nothing to train unasked.
    """
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


def started(tf, session, model):
    """Initialise a model in a session and give it values of its own; a loaded table has its content
    already.
    """
    session.run([tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()])
    session.run(model.v.assign([8.0, 9.0]))
    if hasattr(model.counts, "insert"):
        session.run(model.counts.insert(tf.constant(["bee"]), tf.constant([7], tf.int64)))
    return model


def check(tf, loaded):
    np.testing.assert_array_equal(loaded.scale(tf.constant([1.0, 1.0])).numpy(), [21.0, 32.0])
    found = {
        name: value.numpy().tolist()
        for name, value in loaded.look(tf.constant(["bee", "wasp"])).items()
    }
    assert found == {"id": [1, -1], "count": [7, -5]}
    assert loaded.v.trainable and not loaded.frozen.trainable


@pytest.mark.parametrize("generation", ["traced", "loaded by us", "loaded by TensorFlow"])
def test_COMPAT_01_what_is_in_a_graph_is_saved_out_of_the_default_session(
    tf, both, make, export, tmp_path, generation
):
    sources = {
        "traced": make,
        "loaded by us": lambda: reference_impl.load(export),
        "loaded by TensorFlow": lambda: tf.saved_model.load(str(export)),
    }
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        model = started(tf, session, sources[generation]())
        if generation == "traced":
            reference_impl.save(model, tmp_path / "m", {"scale": model.scale, "look": model.look})
        else:
            reference_impl.save(model, tmp_path / "m")
        assert tf.compat.v1.get_default_graph() is graph and not tf.executing_eagerly()
    for loaded in both(tmp_path / "m"):
        check(tf, loaded)
        assert set(loaded.signatures) == {"scale", "look"}


def test_COMPAT_01_a_finalised_graph_is_saved(tf, both, tmp_path):
    """As `MonitoredSession` leaves it; all that is needed is there but for tables, whose content is
    read by new nodes.
    """
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        root = tf.Module()
        root.v = tf.Variable([1.0, 2.0])
        root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([2])])
        root.f.get_concrete_function()
        session.run(tf.compat.v1.global_variables_initializer())
        graph.finalize()
        reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.f(tf.constant([2.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_COMPAT_01_an_eager_model_is_saved_while_a_graph_is_the_default_one(tf, make, tmp_path):
    model = make()
    reference_impl.save(model, tmp_path / "a")
    with tf.Graph().as_default():
        reference_impl.save(model, tmp_path / "b")
    assert not differences(canonical(tmp_path / "a"), canonical(tmp_path / "b"))


def test_COMPAT_01_slots_of_an_optimizer_of_tf1_are_saved_out_of_a_session(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        root = tf.Module()
        root.v = tf.Variable([1.0, 2.0])
        root.optimizer = v1.train.AdamOptimizer(0.5)
        train = root.optimizer.minimize(lambda: tf.reduce_sum(root.v**2), var_list=[root.v])
        session.run(v1.global_variables_initializer())
        session.run(train)
        expected = session.run([root.v, root.optimizer.get_slot(root.v, "m")])
        reference_impl.save(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.v.numpy(), expected[0])
    np.testing.assert_array_equal(loaded.optimizer.get_slot(loaded.v, "m").numpy(), expected[1])


def test_COMPAT_01_default_values_made_in_a_graph_are_saved(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        root = tf.Module()
        default = tf.constant(3.0)
        root.f = tf.function(
            lambda x, y=default: x + y, input_signature=[tf.TensorSpec([]), tf.TensorSpec([])]
        )
        for generation in ("a", "b"):
            reference_impl.save(root, tmp_path / generation, {"serving_default": root.f})
            root = reference_impl.load(tmp_path / generation)
            session.run(v1.global_variables_initializer())
    loaded = reference_impl.load(tmp_path / "b")
    assert loaded.signatures["serving_default"](x=tf.constant(1.0))["output_0"].numpy() == 4.0
    assert loaded.f(1.0).numpy() == 4.0


def plain(tf, **settings):
    root = tf.Module()
    root.a, root.v = (
        tf.Variable(1.0, name="a"),
        tf.compat.v1.Variable([1.0, 2.0], name="v", **settings),
    )
    return root


def test_COMPAT_01_without_values_at_hand_saving_says_where_they_are(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        root, session = plain(tf, use_resource=True), v1.Session()
    with graph.as_default(), session.as_default():
        session.run(root.a.initializer)
        with pytest.raises(
            SaveError,
            match=r"root\.v\. Run .*global_variables_initializer",
        ):
            reference_impl.save(root, tmp_path / "m")
        session.run(root.v.initializer)
    with (
        graph.as_default(),
        pytest.raises(SaveError, match=r"root\.a: .*session.*as_default"),
    ):
        reference_impl.save(root, tmp_path / "m")
    with pytest.raises(SaveError, match="default one"):
        reference_impl.save(root, tmp_path / "m")
    with (
        tf.Graph().as_default(),
        v1.Session(),
        pytest.raises(SaveError, match="another graph"),
    ):
        reference_impl.save(root, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with session.as_default():
        reference_impl.save(root, tmp_path / "m")
    assert reference_impl.load(tmp_path / "m").v.numpy().tolist() == [1.0, 2.0]


def test_COMPAT_01_reference_variables_are_refused(tf, tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        root = plain(tf, use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        with pytest.raises(SaveError, match=r"root\.v: 'v:0' .*enable_resource_variables"):
            reference_impl.save(root, tmp_path / "m")


def test_COMPAT_01_saving_inside_of_a_function_is_refused(tf, tmp_path):
    root = tf.Module()

    @tf.function(autograph=False)
    def function():
        reference_impl.save(root, tmp_path / "m")

    with pytest.raises(AssertionError, match=r"tf\.function") as caught:
        function()
    assert isinstance(caught.value, SaveError)
