"""What the old model itself does is no fault of the new one: it draws weights, its gradients end
the process, rounding.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow


def saved_by_v1(folder, build):
    """A model of TF 1.x; ``build`` returns outputs, an op that starts it or None, and outputs of
    further signatures.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        outputs, start, *more = build(tf, session, x)
        builder = v1.saved_model.Builder(str(folder))
        named = {"serving_default": outputs, **(more[0] if more else {})}
        signatures = {
            key: v1.saved_model.predict_signature_def({"x": x}, tensors)
            for key, tensors in named.items()
        }
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=start)
        builder.save()


def drawn_weights(tf, session, x):
    """Its main op runs the initialisers, as that of some exporters: of one weight it draws another
    value each time.
    """
    v1 = tf.compat.v1
    noise = v1.get_variable(
        "noise", [4, 2], initializer=v1.random_normal_initializer(), use_resource=True
    )
    w = v1.get_variable("w", initializer=[[1.0], [2.0], [3.0], [4.0]], use_resource=True)
    start = v1.global_variables_initializer()
    session.run(start)
    session.run(w.assign_add(tf.ones([4, 1])))
    return {"noisy": tf.matmul(x, noise), "y": tf.matmul(x, w)}, start


def deadly_gradient(tf, session, x):
    """The gradient of a function of it ends the process."""
    from tensorflow.python.framework import function

    v1 = tf.compat.v1

    @function.Defun(tf.float32, tf.float32, func_name="deadly_gradient")
    def gradient(value, given):
        with tf.control_dependencies([tf.raw_ops.Abort(error_msg="the gradient")]):
            return given + 0 * value

    @function.Defun(tf.float32, func_name="with_deadly_gradient", grad_func=gradient)
    def doubled(given):
        return given * 2

    w = v1.get_variable("w", initializer=[[1.0], [2.0], [3.0], [4.0]], use_resource=True)
    session.run(v1.global_variables_initializer())
    return {"y": doubled(tf.matmul(x, w))}, None


def deep(tf, session, x):
    """Large terms that nearly cancel: what TensorFlow's optimizer orders otherwise is rounded
    otherwise.
    """
    large, one = tf.constant([100.1, 100.2, 100.3, 100.7]), tf.constant([1.0003] * 4)
    w = tf.compat.v1.get_variable("w", initializer=[[1.0], [2.0], [3.0], [4.0]], use_resource=True)
    session.run(w.initializer)  # the optimizer passes over a graph of very few nodes
    return {
        "y": (x + 1.1) * large * one - (x + 1.1) * tf.constant([100.03] * 4),
        "z": tf.nn.relu(tf.matmul(x, w)),
    }, None


def bucketized(tf, session, x):
    """As tf.Transform wrote it: the last release with a kernel of the op is 2.8."""
    (buckets,) = tf.raw_ops.BoostedTreesBucketize(
        float_values=[x[:, 0]], bucket_boundaries=[[0.0, 1.0, 2.0]]
    )
    return {"bucket": buckets}, None


def counted(tf, session, x):
    """Each call is counted: only the first answers 1."""
    calls = tf.compat.v1.get_variable("calls", initializer=0.0, use_resource=True)
    session.run(calls.initializer)
    return {"calls": tf.identity(calls.assign_add(1.0)), "y": x * 2.0}, None


def counted_and_set_back(tf, session, x):
    """One signature counts calls, the other begins again: after both, the next round is like the
    first.
    """
    calls = tf.compat.v1.get_variable("calls", initializer=0.0, use_resource=True)
    session.run(calls.initializer)
    outputs = {"calls": tf.identity(calls.assign_add(1.0))}
    return outputs, None, {"set_back": {"calls": tf.identity(calls.assign(0.0))}}


def of_tensorflow_text(tf, session, x):
    """See `done`: its op becomes one of tensorflow-text."""
    return {"y": tf.math.softsign(x)}, None


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    zoo = tmp_path_factory.mktemp("zoo")
    for build in (
        drawn_weights,
        deadly_gradient,
        deep,
        bucketized,
        of_tensorflow_text,
        counted,
        counted_and_set_back,
    ):
        saved_by_v1(zoo / build.__name__, build)
    file = zoo / "of_tensorflow_text/saved_model.pb"
    text = schema.parse(schema.SavedModel, file.read_bytes())
    for node in text.meta_graphs[0].graph_def.node:
        node.op = "RougeL" if node.op == "Softsign" else node.op
    file.write_bytes(text.SerializeToString())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAVEDMODEL_COMPAT_HOME", str(zoo.with_name("home")))  # nothing is installed
        said = CliRunner().invoke(
            cli.main, ["migrate", str(zoo), "--out", str(zoo.with_name("out")), "--json"]
        )
    return {model["relative"]: model for model in json.loads(said.stdout)["models"]}


def states(model):
    return {item["what"]: item["state"] for item in model["parts"][0]["verdicts"]}


def test_weights_that_each_load_draws_anew_are_left_out_and_named(done):
    model = done["drawn_weights"]
    assert model["status"] == "migrated", model["reason"]
    assert (states(model)["weights"], states(model)["answers, tf2"]) == ("equal", "equal")
    notes = " ".join(model["parts"][0]["notes"])
    assert "variable 'noise' is not" in notes
    assert "output 'noisy' of" in notes
    assert "variable 'w': " in notes


def test_gradients_of_the_old_model_that_end_the_process_cost_themselves_only(done):
    model = done["deadly_gradient"]
    assert model["status"] == "migrated", model["reason"]
    assert (states(model)["gradients, tf2"], states(model)["answers, tf2"]) == ("none", "equal")
    assert "(SIGABRT)" in " ".join(model["parts"][0]["notes"])


def test_answers_are_compared_as_far_as_rounding_moves_those_of_the_old_model(done):
    model = done["deep"]
    assert model["status"] == "migrated", model["reason"]
    assert any("rounding moves" in item["detail"] for item in model["parts"][0]["verdicts"])


def test_advice_is_made_from_the_op_history_first(done):
    """It used to be by the name of the op alone: no TensorFlow 2 reads it. 2.8 does, as `compat`
    says.
    """
    model = done["bucketized"]
    assert model["status"] == "unproved", model["reason"]
    assert re.match(r"TensorFlow [\d.]+ to 2\.8 ", model["fix"]), model["fix"]
    assert "no TensorFlow 2 reads" not in model["fix"]


def test_the_advice_without_the_release_is_a_command_line(done):
    model = done["bucketized"]
    paths = [model["name"], str(Path(model["name"]).parents[1] / "out")]
    migrate = f"savedmodel-compat migrate {paths[0]} --runtime tf2.8 --out {paths[1]}"
    assert "runtimes install tf2.8" in model["command"] and migrate in model["command"]


def test_calls_that_change_the_state_are_asked_in_one_order_only(done):
    """The second call of the new model was compared with the answer to the first of the old one."""
    for name in ("counted", "counted_and_set_back"):
        assert done[name]["status"] == "migrated", done[name]["reason"]
        assert states(done[name])["answers, tf2"] == "equal"


def test_ops_of_a_package_are_known_from_its_registry(done):
    assert "package tensorflow-text" in done["of_tensorflow_text"]["fix"]
