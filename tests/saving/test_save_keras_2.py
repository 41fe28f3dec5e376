"""Live models and layers of Keras 2, which is the tf.keras of TensorFlow up to 2.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture
def keras(tf: Any) -> Any:
    version = tf.keras.version() if hasattr(tf.keras, "version") else "2"
    return tf.keras if version.startswith("2") else pytest.importorskip("tf_keras")


def optimizer_state(path: Any) -> dict[str, Any]:
    """Return what the checkpoint of an export holds of an optimizer: {key: value as nested
    lists}.
    """
    import tensorflow

    reader = tensorflow.train.load_checkpoint(str(path / "variables" / "variables"))
    return {
        key: reader.get_tensor(key).tolist()
        for key in reader.get_variable_to_shape_map()
        if "optimizer/" in key
    }


def assert_trained_alike(keras: Any, ours: Any, theirs: Any, x: Any, y: Any) -> None:
    """Check that two exports have the same state of the optimizer, and that a step of training does
    the same to their models.

    The exported model itself is not the yardstick of the step: Keras 2 does not restore slots from
    a SavedModel.
    """
    assert optimizer_state(ours) == optimizer_state(theirs) != {}
    models = [keras.models.load_model(str(path)) for path in (ours, theirs)]
    for model in models:
        model.fit(x, y, verbose=0, shuffle=False)
    np.testing.assert_array_equal(*(model.predict(x, verbose=0) for model in models))


def traces(path: Any) -> dict[str, int]:
    """path of each function -> how many traces it has."""
    (meta_graph,) = reference_impl.inspect(path).meta_graphs
    return {
        function.path: len(function.traces) for function in meta_graph.functions if function.traces
    }


def test_a_live_model_of_keras_2_is_saved_as_tensorflow_saves_it(tf, keras, tmp_path):
    layers = [
        keras.layers.Dense(4),
        keras.layers.Dropout(0.5),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(2),
    ]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    x = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(8, 3)
    model.fit(x, np.zeros((8, 2)), verbose=0)
    reference_impl.save(model, tmp_path / "ours")
    tf.saved_model.save(model, str(tmp_path / "theirs"))
    assert traces(tmp_path / "theirs") == traces(tmp_path / "ours")
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "ours"))
        np.testing.assert_array_equal(loaded(x, training=False), model(x, training=False))
        assert (
            len(loaded.keras_api.layers) == 4
            and len(loaded.keras_api.layers[0].trainable_variables) == 2
        )


def test_a_layer_of_keras_2_without_a_model_is_saved_as_tensorflow_saves_it(tf, keras, tmp_path):
    """Keras traces no layer for itself that no model calls, and nobody else can: the rule is about
    functions of the user.
    """
    root = tf.Module()
    root.layer = keras.layers.Dense(2)
    root.layer.build([None, 2])
    root.f = tf.function(
        lambda x: root.layer(x), input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "ours")
    tf.saved_model.save(root, str(tmp_path / "theirs"))
    assert traces(tmp_path / "theirs") == traces(tmp_path / "ours")
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "ours"))
        np.testing.assert_array_equal(loaded.f(tf.ones([1, 2])), root.f(tf.ones([1, 2])))


@pytest.mark.parametrize(
    "model", ["lstm", "bidirectional", "stacked cells", "stateful", "nested", "mapped"]
)
def test_a_model_with_layers_that_no_model_calls_is_saved(tf, keras, model, tmp_path):
    layers = keras.layers
    made = {
        "lstm": lambda: [layers.LSTM(2, kernel_regularizer="l2")],
        "bidirectional": lambda: [layers.Bidirectional(layers.GRU(2))],
        "stacked cells": lambda: [layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)])],
        "stateful": lambda: [layers.LSTM(2, stateful=True)],
        "nested": lambda: [
            layers.Dense(3),
            keras.Sequential([layers.Conv1D(2, 2), layers.LSTM(2)]),
        ],
        "mapped": lambda: [layers.TimeDistributed(layers.Dense(2)), layers.LSTM(2)],
    }[model]()
    network = keras.Sequential([keras.Input(batch_shape=[2, 4, 3]), *made, layers.Dense(1)])
    network.compile("adam", "mse")
    x = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(2, 4, 3)
    network.fit(x, np.ones([2, 1]), verbose=0)
    network.reset_states()
    expected = network(x, training=False)
    network.reset_states()
    reference_impl.save(network, tmp_path / "m")
    for load in (reference_impl.load, tf.saved_model.load):
        np.testing.assert_allclose(
            load(str(tmp_path / "m"))(x, training=False), expected, rtol=1e-6
        )


@pytest.mark.parametrize("mode", ["int", "tf_idf"])
def test_a_model_with_a_vocabulary_is_saved(tf, keras, mode, tmp_path):
    """Keras lists the table of a layer among its variables."""
    vocabulary = keras.layers.TextVectorization(output_mode=mode)
    vocabulary.adapt(["a b c", "b c"])
    model = keras.Sequential([keras.Input([1], dtype="string"), vocabulary])
    x = tf.constant([["a b"], ["c d"]])
    reference_impl.save(model, tmp_path / "m")
    for load in (reference_impl.load, tf.saved_model.load):
        np.testing.assert_array_equal(load(str(tmp_path / "m"))(x), model(x))
    np.testing.assert_array_equal(
        keras.models.load_model(str(tmp_path / "m")).predict(x, verbose=0),
        model.predict(x, verbose=0),
    )


@pytest.mark.parametrize("where", ["on a layer", "inside a layer", "on a model"])
def test_an_untraced_function_that_the_user_wrote_is_refused_beside_those_of_keras(
    tf, keras, where, tmp_path
):
    class Layer(keras.layers.Layer):
        @tf.function
        def mine(self, x):
            return x

    plain, part = keras.layers.LSTM(2), tf.Module()
    part.mine = tf.function(tf.nn.relu)  # written by the user, although its code is TensorFlow's
    network = keras.Sequential(
        [keras.Input([4, 3]), Layer() if where == "on a layer" else keras.layers.ReLU(), plain]
    )
    if where == "inside a layer":
        plain.part = part
    if where == "on a model":
        network.mine = tf.function(lambda x: x)
    with pytest.raises(errors.UntracedFunctionError, match=r"mine") as caught:
        reference_impl.save(network, tmp_path / "m")
    assert "cell" not in str(caught.value) and "__call__" not in str(caught.value)


def test_a_model_with_a_LossScaleOptimizer_is_saved_and_trained_further(tf, keras, tmp_path):
    x, y = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(8, 3), np.ones([8, 1], np.float32)
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
    model.fit(x, y, verbose=0)
    reference_impl.save(model, tmp_path / "ours")
    tf.saved_model.save(model, str(tmp_path / "theirs"))
    ours, theirs = (sorted(tf.train.load_checkpoint(str(tmp_path / name / "variables" / "variables")).get_variable_to_shape_map())
                    for name in ("ours", "theirs"))  # fmt: skip
    assert (
        [key for key in ours if "optimizer" in key]
        == [key for key in theirs if "optimizer" in key]
        != []
    )
    model.save(str(tmp_path / "keras"), save_format="tf")
    assert_trained_alike(keras, tmp_path / "ours", tmp_path / "keras", x, y)


def test_a_live_model_is_a_keras_model_again_after_our_save(tf, keras, tmp_path):
    model = keras.Sequential(
        [
            keras.Input([4, 3]),
            keras.layers.Bidirectional(keras.layers.LSTM(2)),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    x, y = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(2, 4, 3), np.ones([2, 1], np.float32)
    model.fit(x, y, verbose=0)
    reference_impl.save(model, tmp_path / "m")
    model.save(str(tmp_path / "keras"), save_format="tf")
    again = keras.models.load_model(str(tmp_path / "m"))
    assert [type(layer) for layer in again.layers] == [type(layer) for layer in model.layers]
    assert_trained_alike(keras, tmp_path / "m", tmp_path / "keras", x, y)


def test_a_layer_that_cannot_describe_itself_is_saved_without_a_description(tf, keras, tmp_path):
    class NoConfig(keras.layers.Layer):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def call(self, x):
            return x * self.factor

        def get_config(self):
            raise RuntimeError("no")

    model = keras.Sequential([keras.Input([3]), NoConfig(2.0)])
    reference_impl.save(model, tmp_path / "m")
    np.testing.assert_array_equal(
        tf.saved_model.load(str(tmp_path / "m"))(tf.ones([1, 3])), 2.0 * np.ones([1, 3])
    )


def test_an_export_of_keras_2_is_loaded_and_saved_again(tf, keras, tmp_path):
    model = keras.Sequential(
        [keras.layers.Embedding(5, 3), keras.layers.LSTM(4), keras.layers.Dense(2)]
    )
    model.compile("adam", "mse")
    x = np.array([[1, 2, 0], [3, 4, 1]])
    model.fit(x, np.zeros((2, 2)), verbose=0)
    model.save(str(tmp_path / "export"), save_format="tf")
    reference_impl.save(reference_impl.load(tmp_path / "export"), tmp_path / "again")
    for path in (tmp_path / "export", tmp_path / "again"):
        loaded = reference_impl.load(path)
        np.testing.assert_array_equal(
            loaded(x.astype(np.float32), training=False), model(x, training=False)
        )
        (answer,) = loaded.signatures["serving_default"](tf.constant(x, tf.float32)).values()
        np.testing.assert_allclose(
            answer, model(x), rtol=1e-6
        )  # run by other kernels for recurrent layers
        assert (
            len(loaded.variables)
            == len(reference_impl.load(tmp_path / "export").variables)
            >= len(model.variables)
        )


def test_what_keras_2_has_saved_is_a_keras_model_after_two_more_saves(keras, tmp_path):
    inputs = keras.Input([4], name="a")
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(3, activation="relu")(inputs))
    recurrent = keras.layers.Bidirectional(keras.layers.LSTM(2))(
        keras.layers.RepeatVector(3)(hidden)
    )
    model = keras.Model(inputs, keras.layers.Dense(1)(recurrent))
    model.compile("adam", "mse")
    x, y = np.linspace(0.0, 1.0, 32, dtype=np.float32).reshape(8, 4), np.ones([8, 1], np.float32)
    model.fit(x, y, verbose=0)
    model.save(str(tmp_path / "keras"), save_format="tf")
    reference_impl.save(reference_impl.load(tmp_path / "keras"), tmp_path / "one")
    reference_impl.save(reference_impl.load(tmp_path / "one"), tmp_path / "two")
    again = keras.models.load_model(str(tmp_path / "two"))
    assert [type(layer) for layer in again.layers] == [type(layer) for layer in model.layers]
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
    assert_trained_alike(keras, tmp_path / "two", tmp_path / "keras", x, y)
