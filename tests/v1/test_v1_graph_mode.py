"""TF 1.x models loaded into a graph of `tf.compat.v1`: a session initialises them as it does what
tf.saved_model.load makes.
"""

from __future__ import annotations

import json
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from savedmodel_common import tensors

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("COMPAT-01")]

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
# Reference variables, resource variables, tables from constants and files, local variables, an init
# op that reads a variable, a table in a function, a mutable table with content, no SaverDef's
# variables at all, a custom Saver.
MODELS = [
    "half_plus_two", "estimator_dnn_classifier", "hash_table_v2", "index_table_oov",
    "legacy_init_op", "main_op", "table_in_function", "mutable_hash_table", "frozen_constants",
    "custom_saver", "partitioned_variables",
]  # fmt: skip


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def recorded(case):
    """Signature, inputs and outputs of every request of a fixture whose tensors are dense."""
    folder = FIXTURES / case / "io"
    for request in json.loads((folder / "io.json").read_text())["requests"]:
        inputs, outputs = (tensors.load(folder / request[side]) for side in ("inputs", "outputs"))
        yield request["signature"], inputs, outputs


def tolerance(case):
    """What the fixture allows, with its reason: zero unless weights were trained."""
    said = json.loads((FIXTURES / case / "io" / "io.json").read_text())["tolerance"]
    return {"rtol": said["rtol"], "atol": said["atol"]}


def by_collections(tf, graph):
    """Run what the collections list, as the warning of tf.saved_model.load says."""
    session = tf.compat.v1.Session()
    session.run(graph.get_collection("saved_model_initializers"))
    session.run(graph.get_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS))
    return session


def by_initializers(tf, graph):
    v1, session = tf.compat.v1, tf.compat.v1.Session()
    for variable in v1.global_variables():
        session.run(variable.initializer)
    session.run([v1.local_variables_initializer(), v1.tables_initializer()])
    return session


def monitored(tf, graph):
    return tf.compat.v1.train.MonitoredSession()


@pytest.mark.parametrize("start", [by_collections, by_initializers, monitored])
@pytest.mark.parametrize("case", MODELS)
def test_a_session_answers_as_the_producer_did(tf, case, start):
    with tf.Graph().as_default() as graph:
        root = reference_impl.load(FIXTURES / case / "model")
        requests = list(recorded(case))
        asked = [
            root.signatures[key](
                **{name: tf.constant(value.array) for name, value in inputs.items()}
            )
            for key, inputs, _ in requests
        ]
        with start(tf, graph) as session:
            answers = [
                session.run(tensors_of) for tensors_of in asked
            ]  # one after the other: some change the state
    assert answers
    for answer, (_, _, outputs) in zip(answers, requests):
        assert sorted(answer) == sorted(outputs)
        for name, value in answer.items():
            if value.dtype == object:
                assert value.tolist() == outputs[name].array.tolist()
            else:
                np.testing.assert_allclose(value, outputs[name].array, **tolerance(case))


WITHOUT_V2 = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
import reference_impl
root = reference_impl.load(sys.argv[1])
answers = root.signatures["serving_default"](**{sys.argv[2]: tf.constant(eval(sys.argv[3]))})
with tf.train.MonitoredSession() as session:
    print(session.run(answers)[sys.argv[4]].tolist())
"""


@pytest.mark.parametrize(
    ("case", "name", "value", "result", "expected"),
    [
        ("half_plus_two", "x", "[[2.0]]", "y", [[3.0]]),
        ("table_in_function", "words", "['two']", "ids", [2]),
    ],
)
def test_without_the_behaviour_of_tf2(case, name, value, result, expected):
    done = fresh_tensorflow.run(WITHOUT_V2, FIXTURES / case / "model", name, value, result)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_variables_are_listed_as_tensorflow_lists_them(tf):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        root = reference_impl.load(FIXTURES / "half_plus_two" / "model")
        assert v1.global_variables() == list(root.variables)
        assert len(root.variables) == 2 and all(variable.trainable for variable in root.variables)
        assert not v1.trainable_variables()
        assert len(graph.get_collection("saved_model_initializers")) == 1
        vocabulary = reference_impl.load(FIXTURES / "index_table_oov" / "model")
        assert (
            len(graph.get_collection(v1.GraphKeys.ASSET_FILEPATHS))
            == len(vocabulary.asset_paths)
            == 1
        )


def test_loading_eagerly_changes_no_collection(tf):
    graph = tf.compat.v1.get_default_graph()
    before = {key: list(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
    for case in ("half_plus_two", "index_table_oov"):
        reference_impl.load(FIXTURES / case / "model")
    assert {
        key: list(graph.get_collection(key)) for key in graph.get_all_collection_keys()
    } == before


def save_partly(tf, path):
    """A TF 1.x model with a variable that its Saver leaves out."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], "x")
        kept = v1.get_variable("kept", initializer=2.0, use_resource=True)
        left = v1.get_variable("left", initializer=3.0, use_resource=True)
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(path))
        signature = {
            key: v1.saved_model.predict_signature_def({"x": x}, {"y": x * variable})
            for key, variable in (("serving_default", kept), ("left", left))
        }
        builder.add_meta_graph_and_variables(
            session, ["serve"], signature, saver=v1.train.Saver([kept])
        )
        builder.save()


def test_no_session_waits_for_a_variable_without_a_value(tf, tmp_path):
    save_partly(tf, tmp_path / "model")
    with tf.Graph().as_default():
        root = reference_impl.load(tmp_path / "model")
        assert root.uninitialized_variables == ("left:0",)
        y = root.signatures["serving_default"](tf.constant([1.0]))["y"]
        with tf.compat.v1.train.MonitoredSession() as session:
            assert session.run(y).tolist() == [2.0]


def test_a_variable_that_the_init_op_sets_waits_for_those_that_are_restored(tf):
    """All global variables are initialised at once, in any order."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        root = reference_impl.load(FIXTURES / "custom_saver" / "model")
        derived = next(variable for variable in root.variables if variable.name == "derived:0")
        session.run(derived.initializer)
        assert session.run(derived) == 6.0


def test_another_checkpoint_is_restored_by_an_operation(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        root = reference_impl.load(FIXTURES / "half_plus_two" / "model")
        again = root.restore(str(FIXTURES / "half_plus_two" / "model" / "variables" / "variables"))
        a = next(variable for variable in root.variables if variable.name == "a:0")
        session.run(v1.global_variables_initializer())
        session.run(a.assign(7.0))
        assert session.run(a) == 7.0
        session.run(again)
        assert session.run(a) == 0.5


def test_what_a_session_trained_is_saved(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        root = reference_impl.load(FIXTURES / "half_plus_two" / "model")
        y = root.signatures["serving_default"](tf.constant([[2.0]]))["y"]
        train = v1.train.GradientDescentOptimizer(0.5).minimize(y, var_list=list(root.variables))
        session.run(v1.global_variables_initializer())
        session.run(train)
        expected = session.run(y)
        reference_impl.save(root, tmp_path / "copy")
    assert expected.tolist() == [[-0.5 * 2.0 + 1.5]]
    copy = reference_impl.load(tmp_path / "copy")
    assert (
        copy.signatures["serving_default"](tf.constant([[2.0]]))["y"].numpy().tolist()
        == expected.tolist()
    )
