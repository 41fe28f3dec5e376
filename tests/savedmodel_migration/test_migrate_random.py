"""Models that draw numbers: what is random proves nothing, the rest is compared, and every run says
the same.
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from compat_matrix.requests.draws import drawn
from reference_impl.format.container import layout
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow


def saved_by_v1(folder, build, main_op=None):
    """A model of TF 1.x with a variable; ``build`` makes outputs of an input and of the
    variable.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        w = v1.get_variable(
            "w", initializer=tf.reshape(tf.range(20.0) / 7 - 1, [4, 5]), use_resource=True
        )
        outputs = build(tf, x, w)
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"x": x}, outputs)
        builder = v1.saved_model.Builder(str(folder))
        start = main_op(tf) if main_op else None
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=start
        )
        builder.save()
    return folder


def sampled_class(tf, x, w):
    """A class that changes only in a few of many calls: two models may well answer alike."""
    sampled = 0 * w + tf.random.normal([4, 5])
    return {
        "class": tf.argmax(tf.matmul(x, sampled) + tf.constant([0.0, 0.0, 1.0, 0.0, 0.0]), axis=1)
    }


def random_beside_a_score(tf, x, w):
    score = tf.matmul(x, w)
    return {"noisy": score + tf.random.normal([5]), "score": score}


def closed_dropout(tf, x, w):
    """As exporters leave it: a placeholder that nobody feeds says that it is not training."""
    v1 = tf.compat.v1
    training = v1.placeholder_with_default(False, [], name="keras_learning_phase")
    with v1.variable_scope("d"):
        y = v1.cond(training, lambda: v1.nn.dropout(x, rate=0.5), lambda: tf.identity(x))
    return {"y": tf.matmul(y, w)}


def idle_dropout(tf, x, w):
    return {"y": tf.matmul(x * tf.floor(1.0 + tf.random.uniform([4])), w)}


def drawn_in_a_loop(tf, x, w):
    step = lambda i, total: (i + 1, total + tf.random.uniform([]))  # noqa: E731
    total = tf.while_loop(lambda i, _: i < 3, step, [0, 0.0])[1]
    return {"noisy": x + total, "y": tf.matmul(x, w)}


@pytest.mark.parametrize(
    ("build", "outputs"),
    [
        (sampled_class, {"class"}),
        (random_beside_a_score, {"noisy"}),
        (closed_dropout, set()),
        (idle_dropout, {"y"}),
        (drawn_in_a_loop, {"noisy"}),
    ],
)
def test_the_graph_says_which_outputs_may_depend_on_drawn_numbers(tmp_path, build, outputs):
    (graph,) = layout.read(saved_by_v1(tmp_path / "m", build)).saved_model.meta_graphs
    assert set(drawn(graph, "serving_default")) == outputs


def test_drawn_numbers_are_followed_through_functions_and_variables(tmp_path):
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self):
            self.held = tf.Variable([0.0, 0.0])

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def inner(self, x):
            return x + 1, x + tf.random.uniform([2])

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def serve(self, x):
            same, other = self.inner(x)
            self.held.assign(other)
            seeded = x * tf.random.uniform([2], seed=3)
            chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: other, lambda: x)
            return {
                "same": same,
                "other": other,
                "held": self.held + 1,
                "seeded": seeded,
                "size": tf.shape(other),
                "if": chosen,
            }

    model = Model()
    tf.saved_model.save(model, str(tmp_path / "m"), signatures=model.serve)
    (graph,) = layout.read(tmp_path / "m").saved_model.meta_graphs
    assert set(drawn(graph, "serving_default")) == {"other", "held", "if"}
    assert set(drawn(graph, "serving_default", seeded=True)) == {"other", "held", "if", "seeded"}


STATUS = {
    "sampled_class": "unproved",
    "random_beside_a_score": "migrated",
    "closed_dropout": "migrated",
    "idle_dropout": "migrated",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs over one folder of models: name -> record, each."""
    zoo = tmp_path_factory.mktemp("zoo")
    for name in STATUS:
        saved_by_v1(zoo / name, globals()[name])
    found = []
    for run in ("one", "two"):
        said = CliRunner().invoke(
            cli.main, ["migrate", str(zoo), "--out", str(zoo.with_name(run)), "--json"]
        )
        found.append({model["relative"]: model for model in json.loads(said.stdout)["models"]})
    return found


def test_two_runs_say_the_same_of_models_that_draw(runs):
    for run in runs:
        assert {name: model["status"] for name, model in run.items()} == STATUS
        assert run["sampled_class"]["reason"].startswith("random: ")


def test_what_is_random_is_named_and_the_rest_is_compared(runs):
    for run in runs:
        (part,) = run["random_beside_a_score"]["parts"]
        assert any("output 'noisy'" in note and "not compared" in note for note in part["notes"])
        states = {item["what"]: item["state"] for item in part["verdicts"]}
        assert states["answers, tf2"] in ("equal", "close") and states["gradients, tf2"] in (
            "equal",
            "close",
        )
