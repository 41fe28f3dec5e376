"""`savedmodel_compat.keras`: a SavedModel as a layer of Keras 3."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow
keras = pytest.importorskip("keras", minversion="3")

import tensorflow as tf  # noqa: E402

import reference_impl  # noqa: E402
from savedmodel_compat.keras import KerasLayer, SavedModelLayer, TFSMLayer  # noqa: E402

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
X = np.linspace(-1, 1, 24).reshape(6, 4).astype("float32")


@pytest.fixture(scope="module")
def keras_2(tmp_path_factory):
    """A model of Keras 2 with all that a layer has to carry: BatchNormalization, losses, frozen
    weights.
    """
    old = pytest.importorskip("tf_keras")
    net = old.Sequential([
        old.layers.Dense(5, kernel_regularizer="l2", activity_regularizer="l1", input_shape=(4,), name="first"),
        old.layers.BatchNormalization(name="norm"),
        old.layers.Dense(3, trainable=False, name="frozen"),
        old.layers.Dense(1, name="last"),
    ])  # fmt: skip
    net.compile("sgd", "mse")
    net.fit(X, np.ones((6, 1)), epochs=2, verbose=0)
    folder = tmp_path_factory.mktemp("keras_2") / "model"
    net.save(folder, save_format="tf")
    return folder, net


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A model of `tf.Module`, as TensorFlow Hub has them."""

    class Reusable(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.eye(4, 2, dtype="float32"), name="w")
            self.fixed = tf.Variable([2.0, 3.0], trainable=False, name="fixed")
            self.variables_ = [self.w, self.fixed]
            self.regularization_losses = [
                tf.function(lambda: tf.reduce_sum(self.w) * 0.5, input_signature=[])
            ]

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
        def __call__(self, x):
            return x @ self.w * self.fixed

    folder = tmp_path_factory.mktemp("module") / "model"
    root = Reusable()
    both = tf.function(
        lambda x: {"a": root(x), "b": x},
        input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")],
    )
    alone = tf.function(
        lambda x: {"a": root(x)}, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")]
    )
    tf.saved_model.save(root, folder, signatures={"both": both, "alone": alone})
    return folder


def functional(layer, size=4):
    x = keras.Input((size,))
    return keras.Model(x, keras.layers.Dense(2)(layer(x)))


def in_a_fresh_process(file, tmp_path, *, code=""):
    """What a process that only imports the public layer says of a `.keras` file."""
    program = f"""
import json, sys
import numpy as np, keras
import savedmodel_compat.keras
model = keras.saving.load_model(sys.argv[1], safe_mode=False)
x = np.load(sys.argv[2])
said = {{"y": np.asarray(model(x)).tolist(), "weights": [np.asarray(w).tolist() for w in model.weights],
         "trainable": len(model.trainable_weights)}}
{code}
print(json.dumps(said))
"""
    np.save(tmp_path / "x.npy", X)
    return json.loads(fresh_tensorflow.printed(program, file, tmp_path / "x.npy").splitlines()[-1])


def test_it_answers_as_the_model_did(keras_2):
    folder, net = keras_2
    layer = SavedModelLayer(folder)
    np.testing.assert_allclose(
        layer(X, training=False), net(X, training=False), rtol=1e-5, atol=1e-6
    )
    assert not np.allclose(layer(X, training=True), net(X, training=False)), (
        "BatchNormalization normalizes by the batch"
    )


def test_weights_are_there_once_and_train_as_they_did(keras_2):
    folder, net = keras_2
    layer = SavedModelLayer(folder)
    assert len({id(weight) for weight in layer.weights}) == len(layer.weights) == len(net.weights)
    assert len(layer.trainable_weights) == len(net.trainable_weights)
    layer.trainable = False
    assert layer.trainable_weights == []


def test_losses_are_those_of_the_model(keras_2):
    folder, net = keras_2
    net(X, training=True)
    outer = functional(SavedModelLayer(folder))
    outer(X, training=True)
    np.testing.assert_allclose(float(sum(outer.losses)), float(sum(net.losses)), rtol=1e-5)


def test_a_step_is_the_step_of_the_model(keras_2, tmp_path):
    folder, _ = keras_2
    old = pytest.importorskip("tf_keras").models.load_model(folder)
    target = np.linspace(0, 1, 6).reshape(6, 1).astype("float32")
    new = keras.Sequential([SavedModelLayer(folder)])
    new.build((None, 4))
    old.compile(pytest.importorskip("tf_keras").optimizers.SGD(0.1), "mse")
    new.compile(keras.optimizers.SGD(0.1), "mse")
    before = [np.asarray(weight) for weight in new.weights]
    np.testing.assert_allclose(
        new.train_on_batch(X, target), old.train_on_batch(X, target), rtol=1e-5
    )
    values = {weight.name.split(":")[0].replace("/", "_"): weight.numpy() for weight in old.weights}
    changed = 0
    for weight, was in zip(new.weights, before):
        np.testing.assert_allclose(
            np.asarray(weight), values[weight.name], rtol=1e-4, atol=1e-6, err_msg=weight.name
        )
        changed += not np.array_equal(was, weight)
    assert changed == 8, "all but the frozen kernel and bias, moving averages too"


@pytest.mark.clause("GOAL-12")
def test_fit_inside_a_functional_model_lowers_the_loss(module):
    model = functional(SavedModelLayer(module))
    model.compile(keras.optimizers.Adam(0.05), "mse")
    history = model.fit(X, np.ones((6, 2)), epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0] / 2


@pytest.mark.clause("GOAL-12")
def test_a_file_holds_the_trained_weights_for_a_fresh_process(module, tmp_path):
    model = functional(SavedModelLayer(module))
    model.compile(keras.optimizers.Adam(0.05), "mse")
    model.fit(X, np.ones((6, 2)), epochs=3, verbose=0)
    model.save(tmp_path / "model.keras")
    code = """
model.fit(x, np.ones((6, 2)), epochs=1, verbose=0)
said["trains"] = not np.array_equal(np.asarray(model.layers[1].resolved_object.w), np.asarray(said["weights"][0]))
model.save(sys.argv[1])
said["next"] = np.asarray(keras.saving.load_model(sys.argv[1], safe_mode=False)(x)).tolist() == np.asarray(model(x)).tolist()
"""
    said = in_a_fresh_process(tmp_path / "model.keras", tmp_path, code=code)
    assert said["y"] == np.asarray(model(X)).tolist()
    assert said["weights"] == [np.asarray(weight).tolist() for weight in model.weights]
    assert said["trainable"] == len(model.trainable_weights) == 3
    assert said["trains"] is True, "the variables of the function are those that Keras trains"
    assert said["next"] is True


def test_a_file_of_a_keras_2_model(keras_2, tmp_path):
    model = functional(SavedModelLayer(keras_2[0]))
    model.save(tmp_path / "model.keras")
    assert (
        in_a_fresh_process(tmp_path / "model.keras", tmp_path)["y"] == np.asarray(model(X)).tolist()
    )


def test_a_file_is_a_program_and_not_run_without_leave(module, tmp_path):
    functional(SavedModelLayer(module)).save(tmp_path / "model.keras")
    program = "import sys, keras, savedmodel_compat.keras; keras.saving.load_model(sys.argv[1])"
    done = fresh_tensorflow.run(program, tmp_path / "model.keras")
    assert done.returncode and "safe_mode=False" in done.stderr.splitlines()[-1]


def test_a_copy_of_a_model_has_weights_of_its_own(module):
    model = functional(SavedModelLayer(module))
    copy = keras.models.clone_model(model)
    copy.layers[1].weights[0].assign(np.zeros((4, 2)))
    assert np.any(np.asarray(model.layers[1].weights[0]))
    assert not np.any(np.asarray(copy.layers[1](X)))


def test_an_export_holds_what_the_layer_has_learned(module, tmp_path):
    model = functional(SavedModelLayer(module))
    model.layers[1].weights[0].assign(np.full((4, 2), 0.5))
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(loaded.serve(X), model(X), rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.Variable(tf.zeros([2, 3]), shape=tf.TensorShape([2, None])),
        lambda: tf.Variable(1.0, shape=tf.TensorShape(None)),
        lambda: tf.Variable("a"),
        lambda: tf.Variable(tf.cast([1], tf.qint8)),
    ],
    ids=["open-shape", "no-rank", "string", "quantized"],
)
def test_a_variable_that_keras_cannot_have_stays_in_the_saved_model(make, tmp_path):
    root = tf.Module()
    root.scale, root.extra = tf.Variable([1.0, 2.0], name="scale"), make()
    root.__call__ = tf.function(
        lambda x: x * root.scale, input_signature=[tf.TensorSpec([None, 2])]
    )
    reference_impl.save(root, tmp_path / "model")

    assert [variable.name for variable in SavedModelLayer(tmp_path / "model").variables] == [
        "scale"
    ]
    model = functional(SavedModelLayer(tmp_path / "model"), 2)
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.zeros((4, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    assert [variable.path.rpartition("/")[2] for variable in again.layers[1].variables] == ["scale"]
    np.testing.assert_array_equal(again(np.ones((1, 2))), model(np.ones((1, 2))))


def test_signatures_by_name_and_output(module):
    np.testing.assert_allclose(SavedModelLayer(module, "alone")(X), SavedModelLayer(module)(X))
    assert set(SavedModelLayer(module, "both")(X)) == {"a", "b"}
    np.testing.assert_array_equal(SavedModelLayer(module, "both", output_key="b")({"x": X}), X)
    with pytest.raises(ValueError, match=r"no function 'other'\. Signatures: alone, both"):
        SavedModelLayer(module, "other")
    with pytest.raises(ValueError, match="no output 'c'"):
        SavedModelLayer(module, "both", output_key="c")(X)


@pytest.mark.parametrize("trainable", [False, True])
def test_drop_in_for_the_layer_of_tensorflow_hub(module, trainable):
    """Its losses and its weights train only where `trainable=True`, which is not the default."""
    layer = KerasLayer(os.fspath(module), trainable=trainable)
    assert KerasLayer(os.fspath(module)).trainable is False
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model(X)
    assert len(model.trainable_weights) == 2 + trainable
    assert len(model.losses) == trainable
    with pytest.raises(ValueError, match="output_key"):
        KerasLayer(os.fspath(module), signature="both")
    assert set(
        KerasLayer(os.fspath(module), signature="alone", signature_outputs_as_dict=True)(X)
    ) == {"a"}
    np.testing.assert_array_equal(
        KerasLayer(os.fspath(module), signature="both", output_key="b")(X), X
    )


def test_drop_in_for_the_layer_of_keras(tmp_path):
    x = keras.Input((4,))
    source = keras.Model(x, keras.layers.Dense(2)(keras.layers.BatchNormalization()(x)))
    source.export(tmp_path / "export", verbose=False)
    ours, theirs = (
        TFSMLayer(os.fspath(tmp_path / "export")),
        keras.layers.TFSMLayer(os.fspath(tmp_path / "export")),
    )
    np.testing.assert_array_equal(ours(X), theirs(X))
    assert len(ours.trainable_weights) == len(theirs.trainable_weights) == 4
    model = functional(ours)
    model.save(tmp_path / "model.keras")
    assert (
        in_a_fresh_process(tmp_path / "model.keras", tmp_path)["y"] == np.asarray(model(X)).tolist()
    )
    named = TFSMLayer(os.fspath(tmp_path / "export"), call_endpoint="serving_default")
    assert isinstance(named(X), dict)


@pytest.mark.parametrize("name", ["half_plus_two", "legacy_init_op"])
def test_a_model_of_tf_1(name, tmp_path):
    folder = FIXTURES / name / "model"
    if not folder.is_dir():
        pytest.fail(f"no fixture {name}")
    import reference_impl

    loaded = reference_impl.load(folder)
    key = "serving_default" if "serving_default" in loaded.signatures else min(loaded.signatures)
    (given,) = loaded.signatures[key].structured_input_signature[1].items()
    layer = SavedModelLayer(folder, key)
    values = tf.zeros([1 if size is None else size for size in given[1].shape], given[1].dtype)
    answer, wanted = layer({given[0]: values}), loaded.signatures[key](**{given[0]: values})
    pairs = list(zip(tf.nest.flatten(answer), tf.nest.flatten(wanted)))
    assert pairs
    for got, expected in pairs:
        np.testing.assert_array_equal(got, expected)


def test_another_backend_is_refused_by_name(tmp_path):
    # Only the name of the backend: no other one is installed with the tests.
    said = "keras.backend.backend = lambda: 'jax'"
    program = (
        f"import keras; from savedmodel_compat.keras import SavedModelLayer; {said};"
        " SavedModelLayer('x')"
    )
    done = fresh_tensorflow.run(program)
    assert "this is jax" in done.stderr


def test_what_is_not_there_is_said(module, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        SavedModelLayer(tmp_path / "nothing")
    import shutil

    shutil.copytree(module, tmp_path / "gone")
    model = functional(SavedModelLayer(tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match="is gone"):
        model.save(tmp_path / "model.keras")


def test_losses_of_nested_models_are_added_once(tmp_path):
    old = pytest.importorskip("tf_keras")
    inner = old.Sequential(
        [old.layers.Dense(4, kernel_regularizer="l2", input_shape=(4,))], name="inner"
    )
    net = old.Sequential([inner, old.layers.Dense(2, kernel_regularizer="l2")])
    net.build((None, 4))
    net.save(tmp_path / "nested", save_format="tf")
    layer = SavedModelLayer(tmp_path / "nested")
    layer(X)
    assert len(layer.losses) == 2
    np.testing.assert_allclose(
        sum(map(float, layer.losses)), sum(map(float, net.losses)), rtol=1e-6
    )


def test_a_function_of_a_tuple_in_a_functional_model_that_is_loaded_again(tmp_path):
    specs = [tf.TensorSpec([None, 2], tf.float32, name=name) for name in "ab"]
    root = tf.Module()
    root.__call__ = tf.function(lambda pair: pair[0] - 2 * pair[1], input_signature=[tuple(specs)])
    tf.saved_model.save(root, str(tmp_path / "pair"))
    inputs = tuple(keras.Input((2,), name=name) for name in "ab")
    keras.Model(inputs, SavedModelLayer(tmp_path / "pair")(inputs)).save(tmp_path / "pair.keras")
    script = """
import sys
import numpy as np, keras
import savedmodel_compat.keras
model = keras.saving.load_model(sys.argv[1], safe_mode=False)
np.save(sys.argv[2], model.predict([np.ones((3, 2)), np.full((3, 2), 4.0)], verbose=0))
"""
    fresh_tensorflow.printed(script, tmp_path / "pair.keras", tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full((3, 2), -7.0))


def test_a_file_holds_nothing_from_outside_of_the_saved_model(module, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    copy = shutil.copytree(module, tmp_path / "copy")
    (copy / "assets.extra").mkdir()
    (copy / "assets.extra/link.txt").symlink_to(secret)
    entry = keras.Input((4,))
    model = keras.Model(entry, SavedModelLayer(copy)(entry))
    with pytest.raises(ValueError, match="link out of"):
        model.save(tmp_path / "model.keras")
    (copy / "assets.extra/link.txt").unlink()
    (copy / "assets.extra/link.txt").symlink_to(copy / "saved_model.pb")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded(X), model(X))


def test_a_tensor_of_another_dtype_is_named_through_keras(tmp_path):
    root = tf.Module()
    spec = tf.TensorSpec([None, 2], tf.string, name="words")
    root.length = tf.function(lambda words: {"n": tf.strings.length(words)}, input_signature=[spec])
    tf.saved_model.save(root, str(tmp_path / "length"), signatures=root.length)
    layer = TFSMLayer(tmp_path / "length", call_endpoint="serving_default")
    with pytest.raises(TypeError, match=r"argument 'words' .*float32, not string") as caught:
        layer(X[:, :2])
    assert isinstance(caught.value, tf.errors.InvalidArgumentError)
