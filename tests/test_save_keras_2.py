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
    if not version.startswith("2"):
        pytest.skip(f"tf.keras is Keras {version}")
    return tf.keras


def traces(path: Any) -> dict[str, int]:
    """path of each function -> how many traces it has."""
    (meta_graph,) = reference_impl.inspect(path).meta_graphs
    return {function.path: len(function.traces) for function in meta_graph.functions if function.traces}


def test_a_live_model_of_keras_2_is_saved_as_tensorflow_saves_it(tf, keras, tmp_path):
    layers = [keras.layers.Dense(4), keras.layers.Dropout(0.5), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
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
        assert len(loaded.keras_api.layers) == 4 and len(loaded.keras_api.layers[0].trainable_variables) == 2


def test_a_layer_of_keras_2_without_a_model_is_refused(tf, keras, tmp_path):
    root = tf.Module()
    root.layer = keras.layers.Dense(2)
    root.layer(tf.ones([1, 2]))
    root.f = tf.function(lambda x: root.layer(x), input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    with pytest.raises(errors.UntracedFunctionError, match=r"Keras 2 traces no layers"):
        reference_impl.save(root, tmp_path / "m")
    with pytest.warns(UserWarning, match=r"root\.layer\.__call__"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    assert reference_impl.load(tmp_path / "m").f(tf.ones([1, 2])).shape == [1, 2]


def test_an_export_of_keras_2_is_loaded_and_saved_again(tf, keras, tmp_path):
    model = keras.Sequential([keras.layers.Embedding(5, 3), keras.layers.LSTM(4), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    x = np.array([[1, 2, 0], [3, 4, 1]])
    model.fit(x, np.zeros((2, 2)), verbose=0)
    model.save(str(tmp_path / "export"), save_format="tf")
    reference_impl.save(reference_impl.load(tmp_path / "export"), tmp_path / "again")
    for path in (tmp_path / "export", tmp_path / "again"):
        loaded = reference_impl.load(path)
        np.testing.assert_array_equal(loaded(x, training=False), model(x, training=False))
        (answer,) = loaded.signatures["serving_default"](tf.constant(x, tf.float32)).values()
        np.testing.assert_allclose(answer, model(x), rtol=1e-6)  # run by other kernels for recurrent layers
        assert len(loaded.variables) == len(reference_impl.load(tmp_path / "export").variables) >= len(model.variables)


def test_what_keras_2_has_saved_is_a_keras_model_after_two_more_saves(keras, tmp_path):
    inputs = keras.Input([4], name="a")
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(3, activation="relu")(inputs))
    recurrent = keras.layers.Bidirectional(keras.layers.LSTM(2))(keras.layers.RepeatVector(3)(hidden))
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
    for one in (model, again):  # the slots of the optimizer have come along
        one.fit(x, y, verbose=0, shuffle=False)
    np.testing.assert_allclose(
        again.predict(x, verbose=0), model.predict(x, verbose=0), atol=2e-5
    )  # a step of Adam without its slots is off by 1e-3
