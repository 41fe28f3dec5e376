"""DR-05: an op that nobody has, in the init op of a TF 1.x model, costs the signatures whose tables
it fills, not the model.
"""

from __future__ import annotations

import logging

import pytest
from model_edits import edited, fixture

import reference_impl
from reference_impl import errors

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.filterwarnings("ignore")
v1 = tf.compat.v1
UNKNOWN = "NobodyKnowsThisOp"


def table(values):
    keys = tf.constant(["a", "b"])
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, tf.cast(values, tf.int64)), -1
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model with a main op, and one with collected initialisers: two tables, and one made of what
    the first holds.
    """
    folder = tmp_path_factory.mktemp("tables")
    for name in ("main", "collected"):
        with tf.Graph().as_default(), v1.Session() as session:
            scale = v1.get_variable("scale", initializer=2.0, use_resource=True)
            local = v1.get_local_variable("local", initializer=3.0, use_resource=True)
            x, key = (
                v1.placeholder(tf.float32, [None], "x"),
                v1.placeholder(tf.string, [None], "key"),
            )
            first, second = table([1, 2]), table([3, 4])
            with tf.control_dependencies(v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS)[:1]):
                swapped = first.lookup(tf.constant(["b", "a"]))
            chained = table(swapped)
            session.run(
                [
                    v1.global_variables_initializer(),
                    v1.local_variables_initializer(),
                    v1.tables_initializer(),
                ]
            )
            fetched = {"plain": (x, x * scale), "local": (x, x * local)}
            fetched.update(
                first=(key, first.lookup(key)),
                second=(key, second.lookup(key)),
                chained=(key, chained.lookup(key)),
            )
            info = v1.saved_model.build_tensor_info
            signatures = {
                name: v1.saved_model.build_signature_def(
                    {"i": info(given)}, {"o": info(result)}, "m"
                )
                for name, (given, result) in fetched.items()
            }
            init = tf.group(
                v1.tables_initializer(), v1.local_variables_initializer(), name="init_all"
            )
            builder = v1.saved_model.Builder(str(folder / name))
            builder.add_meta_graph_and_variables(
                session, ["serve"], signatures, main_op=init if name == "main" else None
            )
            builder.save()
    return folder


def nodes_of(op):
    return lambda graph: [node.name for node in graph.node if node.op == op]


def without_op(model, folder, choose, described=True):
    """Return a copy in which the first of the chosen nodes has an op that is not registered."""

    def change(saved_model):
        (meta_graph,) = saved_model.meta_graphs
        nodes = {node.name: node for node in meta_graph.graph_def.node}
        node = nodes[choose(meta_graph.graph_def)[0]]
        if described:
            (definition,) = (
                op for op in meta_graph.meta_info_def.stripped_op_list.op if op.name == node.op
            )
            copy = meta_graph.meta_info_def.stripped_op_list.op.add()
            copy.CopyFrom(definition)
            copy.name = UNKNOWN
        node.op = UNKNOWN

    return edited(model, folder, change)


FILLS, MAKES = nodes_of("LookupTableImportV2"), nodes_of("HashTableV2")
ARGUMENT = {"plain": [1.0], "local": [1.0]}
WHOLE = {"plain": [2.0], "local": [3.0], "first": [1], "second": [3], "chained": [2]}


def answers(root):
    found = {}
    for key, function in root.signatures.items():
        try:
            found[key] = function(i=tf.constant(ARGUMENT.get(key, ["a"])))["o"].numpy().tolist()
        except tf.errors.NotFoundError as error:
            assert (
                isinstance(error, errors.UnsupportedModelError)
                and error.clause == "DR-05"
                and UNKNOWN in str(error)
            )
    return found


REST = {key: value for key, value in WHOLE.items() if key not in ("first", "chained")}


@pytest.mark.parametrize("choose", [FILLS, MAKES], ids=["fills", "makes"])
@pytest.mark.parametrize("init", ["main", "collected"])
def test_only_users_of_the_table_get_the_error(tmp_path, caplog, models, init, choose):
    path = without_op(models / init, tmp_path / "model", choose)
    with pytest.raises(tf.errors.NotFoundError, match=UNKNOWN):
        tf.saved_model.load(str(path))
    with caplog.at_level(logging.WARNING, "reference_impl"):
        loaded = reference_impl.load(path)
    assert answers(loaded) == REST
    named = [record.getMessage() for record in caplog.records]
    assert len(named) == 2 and all(UNKNOWN in text and "not filled" in text for text in named), (
        named
    )
    loaded.initializer._initialize()
    assert answers(loaded) == REST


def test_an_op_that_nothing_describes_is_no_worse(tmp_path, models):
    path = without_op(models / "main", tmp_path / "model", FILLS, described=False)
    assert answers(reference_impl.load(path)) == REST


def test_the_model_can_be_saved_again_and_misses_the_same(tmp_path, models):
    loaded = reference_impl.load(without_op(models / "main", tmp_path / "model", FILLS))
    reference_impl.save(loaded, tmp_path / "again")
    assert answers(reference_impl.load(tmp_path / "again")) == REST


@pytest.mark.parametrize("key", list(WHOLE))
def test_a_part_of_the_model_is_loaded_alike(tmp_path, models, key):
    path = without_op(models / "main", tmp_path / "model", FILLS)
    part = reference_impl.load(path, options=reference_impl.LoadOptions(only=f"signatures.{key}"))
    assert answers(part) == ({key: REST[key]} if key in REST else {})


def test_in_a_graph_a_session_initialises_the_rest(tmp_path, models):
    path = without_op(models / "main", tmp_path / "model", FILLS)
    with tf.Graph().as_default(), v1.Session() as session:
        loaded = reference_impl.load(path)
        second = loaded.signatures["second"](i=tf.constant(["b"]))["o"]
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        assert session.run(second).tolist() == [4]
        with pytest.raises(tf.errors.NotFoundError, match=UNKNOWN):
            loaded.signatures["first"](i=tf.constant(["b"]))


@pytest.mark.parametrize("name", ["local/Assign", "init_all"])
def test_an_op_that_does_something_else_is_still_an_error(tmp_path, models, name):
    path = without_op(models / "main", tmp_path / "model", lambda _: [name])
    with pytest.raises(tf.errors.NotFoundError, match=UNKNOWN):
        reference_impl.load(path)


def test_the_whole_model_answers_everything(models):
    assert answers(reference_impl.load(models / "main")) == WHOLE


def test_users_of_an_iterator_that_cannot_be_filled_get_the_error(tmp_path, caplog):
    def forget(saved_model):
        for function in saved_model.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                node.op = UNKNOWN if node.op == "Mul" else node.op

    with caplog.at_level(logging.WARNING, "reference_impl"):
        loaded = reference_impl.load(
            edited(fixture("one_shot_iterator"), tmp_path / "model", forget)
        )
    (said,) = [record.getMessage() for record in caplog.records]
    assert "not filled" in said and UNKNOWN in said
    x = tf.constant([1.0])
    assert loaded.signatures["serving_default"](x=x)["y"].shape == [1]
    with pytest.raises(tf.errors.NotFoundError, match=UNKNOWN) as raised:
        loaded.signatures["next"](x=x)
    assert raised.value.clause == "DR-05"
