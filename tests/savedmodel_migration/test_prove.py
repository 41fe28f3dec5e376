"""`migrate --to keras` proves that a rebuilt model is saved and trains as the old one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow
keras = pytest.importorskip("keras", minversion="3")

import tensorflow as tf  # noqa: E402

import reference_impl  # noqa: E402
from savedmodel_migration.keras_2_to_3.prove import pairs_of, prove  # noqa: E402
from savedmodel_migration.keras_2_to_3.rebuild import rebuild  # noqa: E402

X = tf.random.stateless_normal([6, 4], [1, 2])
PROVED = ["weights", "gradients", "training step"]


@pytest.fixture
def rebuilt(tmp_path):
    old = pytest.importorskip("tf_keras")
    net = old.Sequential([
        old.layers.Dense(5, kernel_regularizer="l2", kernel_constraint="non_neg", input_shape=(4,)),
        old.layers.BatchNormalization(),
        old.layers.Dense(2, activity_regularizer="l1"),
    ])  # fmt: skip
    net.compile("adam", "mse")
    net.save(tmp_path / "model", save_format="tf")
    return reference_impl.load(tmp_path / "model"), rebuild(tmp_path / "model")


def states(verdicts):
    return {what: state for what, state, _ in verdicts}


def test_an_equal_model_is_equal_in_all(rebuilt):
    old, found = rebuilt
    verdicts = prove(old, found.model, pairs_of(old, found.model, found.variables), X)
    assert [what for what, _, _ in verdicts] == PROVED
    assert (
        set(states(verdicts).values()) <= {"equal", "close"}
        and states(verdicts)["weights"] == "equal"
    )


def test_another_bit_of_a_weight_is_found(rebuilt):
    old, found = rebuilt
    kernel = found.model.layers[0].kernel
    kernel.assign(kernel.value + 1e-7)
    (verdict,) = prove(old, found.model, pairs_of(old, found.model, found.variables), X)
    assert verdict[:2] == ("weights", "differs") and "kernel" in verdict[2]


def test_a_regularizer_that_got_lost_is_found_by_gradients(rebuilt):
    old, found = rebuilt
    found.model.layers[0].kernel.regularizer = found.model.layers[0].kernel_regularizer = None
    assert (
        states(prove(old, found.model, pairs_of(old, found.model, found.variables), X))["gradients"]
        == "differs"
    )


def test_another_momentum_is_found_by_a_step(rebuilt):
    old, found = rebuilt
    found.model.layers[1].momentum = 0.5
    said = states(prove(old, found.model, pairs_of(old, found.model, found.variables), X))
    assert said["gradients"] != "differs" and said["training step"] == "differs"


def test_what_does_not_train_is_said_and_not_called_equal(rebuilt):
    old, found = rebuilt
    found.model.trainable = False
    verdicts = prove(old, found.model, pairs_of(old, found.model, found.variables), X)
    assert verdicts[0][:2] == ("weights", "equal")
    assert verdicts[1:] == [
        (what, "none", "no weight of the model trains") for what in ("gradients", "training step")
    ]


def test_a_gradient_that_is_nearly_zero_is_not_made_a_step_by_adam(tmp_path):
    """Adam divides a gradient by its size, so the step of one that is nearly zero depends on how it
    was rounded.
    """
    old = pytest.importorskip("tf_keras")
    layers, verdicts = old.layers, []
    for seed in (5, 6):
        old.utils.set_random_seed(seed)
        hidden = [
            layers.Dense(8, "relu", input_shape=(4,)),
            layers.BatchNormalization(),
            layers.Dense(16),
        ]
        net = old.Sequential([*hidden, layers.BatchNormalization(), layers.Dense(2)])
        net.compile("adam", "mse")
        net.save(tmp_path / "model", save_format="tf")
        found, loaded = rebuild(tmp_path / "model"), reference_impl.load(tmp_path / "model")
        verdicts += prove(loaded, found.model, pairs_of(loaded, found.model, found.variables), X)
    assert {what for what, _, _ in verdicts} == set(PROVED)
    assert all(state in ("equal", "close") for _, state, _ in verdicts), verdicts


def test_another_strength_of_a_regularizer_is_more_than_rounding(rebuilt):
    old, found = rebuilt
    found.model.layers[0].kernel.regularizer = keras.regularizers.L2(0.00995)  # 0.01 as saved
    assert (
        states(prove(old, found.model, pairs_of(old, found.model, found.variables), X))["gradients"]
        == "differs"
    )


def test_a_step_with_large_gradients_keeps_a_constraint(rebuilt):
    old, found = rebuilt
    found.model.optimizer.learning_rate = 10.0
    verdicts = prove(old, found.model, pairs_of(old, found.model, found.variables), X)
    assert states(verdicts)["training step"] != "differs"
    assert np.min(found.model.layers[0].kernel) == 0


def record_of(code, tmp_path, monkeypatch):
    """Return the record of a model whose layer `Scaled` is rebuilt with the given code.

    The command must exit with 1.
    """
    (tmp_path / "code").mkdir()
    (tmp_path / "code/own_layers.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "code"))
    arguments = [
        "migrate",
        "--to",
        "keras",
        str(tmp_path / "model"),
        "--custom-objects",
        "own_layers:Scaled",
    ]
    result = CliRunner().invoke(cli.main, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 1, result.output
    return json.loads((tmp_path / "out/records/model.json").read_text())


FORGETFUL = """
import keras

class Scaled(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="ones")

    def call(self, x):
        return x * self.scale

    def load_own_variables(self, store):
        pass
"""


def test_a_file_that_loads_with_other_weights_is_not_written(tmp_path, monkeypatch):
    old = pytest.importorskip("tf_keras")

    class Scaled(old.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="normal")

        def call(self, x):
            return x * self.scale

    old.Sequential([Scaled(input_shape=(3,))]).save(tmp_path / "model", save_format="tf")
    record = record_of(FORGETFUL, tmp_path, monkeypatch)
    assert (
        record["status"] == "differs"
        and record["reason"].startswith("saved file:")
        and "scale" in record["reason"]
    )
    assert not list((tmp_path / "out").rglob("*.keras"))


PICKY = """
import keras

class Scaled(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="ones")

    def call(self, x, training=False):
        if training:
            raise ValueError("this layer cannot train")
        return x * self.scale
"""


def test_the_reason_is_the_error_of_the_layer_without_colours_and_arguments_that_keras_adds(
    tmp_path, monkeypatch
):
    old = pytest.importorskip("tf_keras")

    class Scaled(old.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="normal")

        def call(self, x, training=False):
            return x * self.scale

    old.Sequential([Scaled(input_shape=(3,))]).save(tmp_path / "model", save_format="tf")
    record = record_of(PICKY, tmp_path, monkeypatch)
    assert record["reason"].startswith("training step: ")


def test_statistics_that_a_dropout_moves_are_no_difference(tmp_path):
    """No answer shows what the Dropout draws; the statistics behind it do, in each call others."""
    old = pytest.importorskip("tf_keras")
    layers = old.layers
    drop, hide = layers.Dropout(0.5, input_shape=(4,)), layers.Rescaling(0.0)
    old.Sequential([drop, layers.BatchNormalization(momentum=0.5), hide]).save(
        tmp_path / "model", save_format="tf"
    )
    loaded, found = reference_impl.load(tmp_path / "model"), rebuild(tmp_path / "model")
    verdicts = prove(loaded, found.model, pairs_of(loaded, found.model, found.variables), X)
    assert set(states(verdicts).values()) <= {"equal", "close"}, verdicts
