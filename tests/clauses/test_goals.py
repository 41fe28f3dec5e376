"""Clauses GOAL-* and NG-*: parts of models, their composition, what is kept of them and what is
not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def model(tf):
    """An encoder with a normalisation and regularisation losses, beside a head; a Python method; a
    table.
    """

    class Encoder(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(2.0, name="scale")
            self.mean = tf.Variable(0.0, trainable=False, name="mean")
            self.losses = [
                tf.function(lambda: self.scale**2 + 1.0),
                tf.function(lambda: self.scale * 4.0),
            ]
            for loss in self.losses:
                loss()

        @tf.function
        def __call__(self, x, training=False):
            if training:
                self.mean.assign(0.5 * self.mean + 0.5 * tf.reduce_mean(x))
            return (x - self.mean) * self.scale

        def in_python_only(self):
            raise AssertionError("never run")

    root = tf.Module()
    root.encoder = Encoder()
    root.head = tf.Variable([100.0], name="head")
    for training in (False, True):
        root.encoder(tf.constant([0.0]), training=training)
    root.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
    root.look = tf.function(
        lambda key: root.table.lookup(key), input_signature=[tf.TensorSpec([], tf.string)]
    )
    root.predict = tf.function(
        lambda x: root.encoder(x) + root.head, input_signature=[tf.TensorSpec([1], tf.float32)]
    )
    return root


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    directory = tmp_path_factory.mktemp("goals") / "model"
    reference_impl.save(model, directory, model.predict)
    return directory


def test_GOAL_01_a_part_of_a_model_is_exported_alone(model, both, tmp_path):
    reference_impl.save(model.encoder, tmp_path / "part")
    with BundleReader(tmp_path / "part/variables/variables") as reader:
        names = [key for key in reader.keys() if key.endswith("VARIABLE_VALUE")]  # noqa: SIM118
    assert sorted(names) == ["mean/.ATTRIBUTES/VARIABLE_VALUE", "scale/.ATTRIBUTES/VARIABLE_VALUE"]
    for loaded in both(tmp_path / "part"):
        assert loaded([3.0]).numpy().tolist() == [6.0]
        assert not hasattr(loaded, "head")


def test_GOAL_04_updates_run_when_the_training_branch_is_called(saved, both):
    for loaded in both(saved):
        assert (
            loaded.encoder([4.0], training=False).numpy() == 8.0
            and loaded.encoder.mean.numpy() == 0.0
        )
        assert (
            loaded.encoder([4.0], training=True).numpy() == 4.0
            and loaded.encoder.mean.numpy() == 2.0
        )


def test_GOAL_05_regularisation_losses_are_callables(tf, saved, both):
    for loaded in both(saved):
        with tf.GradientTape() as tape:
            values = [loss() for loss in loaded.encoder.losses]
        assert [value.numpy() for value in values] == [5.0, 8.0]
        assert tape.gradient(values, loaded.encoder.scale).numpy() == 2 * 2.0 + 4.0


def test_GOAL_06_a_fine_tuned_model_is_exported_with_its_new_state(tf, saved, both, tmp_path):
    loaded = reference_impl.load(saved)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.signatures["serving_default"](x=tf.constant([3.0]))["output_0"])
    for variable, gradient in zip(
        loaded.trainable_variables, tape.gradient(loss, loaded.trainable_variables)
    ):
        variable.assign_sub(0.5 * gradient)
    reference_impl.save(loaded, tmp_path / "tuned")
    for again in both(tmp_path / "tuned"):
        assert (again.encoder.scale.numpy(), again.head.numpy().tolist()) == (0.5, [99.5])
        assert again.signatures["serving_default"](x=tf.constant([3.0]))["output_0"].numpy() == [
            101.0
        ]


def test_GOAL_07_a_program_looks_into_a_model_without_loading_it(saved):
    code = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] not in ("tensorflow", "keras", "numpy"), name
sys.meta_path.insert(0, Blocker())
import reference_impl
graph = reference_impl.inspect(sys.argv[1]).meta_graphs[0]
print(sorted(item.path for item in graph.functions if item.traces))
print(sorted(variable.path for variable in graph.variables))
print([(s.key, [tensor.name for tensor in s.inputs]) for s in graph.signatures if not s.key.startswith("__")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    functions, variables, signatures = map(eval, done.stdout.splitlines())
    assert {"encoder.__call__", "encoder.losses.0", "look", "predict"} <= set(functions)
    assert variables == ["encoder.mean", "encoder.scale", "head"]
    assert signatures == [("serving_default", ["x"])]


def test_GOAL_08_one_state_serves_several_data_flows(tf, saved, both):
    for loaded in both(saved):
        with tf.GradientTape() as tape:
            y = loaded.encoder([1.0]) + loaded.predict([2.0])  # both read the same scale
        assert tape.gradient(y, loaded.encoder.scale).numpy() == 1.0 + 2.0
        loaded.encoder.scale.assign(10.0)
        assert (
            loaded.predict([2.0]).numpy() == [120.0] and loaded.encoder.losses[1]().numpy() == 40.0
        )


def test_GOAL_09_a_keras_layer_in_a_module_runs_in_a_session(tf, tmp_path):
    keras = pytest.importorskip("keras", minversion="3")
    root = tf.Module()
    root.layer = keras.layers.Dense(1, kernel_initializer="ones")
    root.layer.build((None, 2))
    root.f = tf.function(
        lambda x: root.layer(x), input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "m")
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.loader.load(
            session, ["serve"], str(tmp_path / "m")
        ).signature_def["serving_default"]
        fetch, feed = signature.outputs["output_0"].name, signature.inputs["x"].name
        assert session.run(fetch, {feed: [[1.0, 2.0]]}).tolist() == [[3.0]]


def test_GOAL_11_functionality_comes_back_into_python(saved, both):
    for loaded in both(saved):
        assert loaded.look("a").numpy() == 7 and loaded.look("b").numpy() == -1
        assert loaded.predict([1.0]).numpy() == [102.0]
        assert loaded.head.numpy() == [100.0]


def test_GOAL_14_a_tf1_model_loads_by_the_same_symbol_without_object_structure(tf):
    root = reference_impl.load(ROOT / "fixtures_v1/half_plus_two/model")
    assert root.signatures["serving_default"](tf.constant([[2.0]]))["y"].numpy() == 3.0
    assert len(root.variables) == 2 and callable(root.prune)
    assert not hasattr(root, "a") and not hasattr(root, "b")


def test_NG_01_there_is_one_meta_graph(model, tmp_path):
    reference_impl.save(
        model, tmp_path / "m", options=reference_impl.SaveOptions(extra_tags=("gpu",))
    )
    assert [
        set(graph.meta_info_def.tags)
        for graph in layout.read(tmp_path / "m").saved_model.meta_graphs
    ] == [{"serve", "gpu"}]


def test_NG_02_python_methods_are_absent(saved, both):
    for loaded in both(saved):
        assert not hasattr(loaded.encoder, "in_python_only")
        assert not hasattr(loaded.table, "lookup")


def test_NG_03_everything_is_usable_while_another_graph_is_built(tf, saved, both):
    for loaded in both(saved):

        @tf.function
        def outer(x, loaded=loaded):
            loaded.encoder.mean.assign(1.0)
            return loaded.encoder(x) + loaded.head * tf.cast(loaded.look("a"), tf.float32)

        np.testing.assert_array_equal(outer([3.0]), [4.0 + 700.0])
