"""The state of an optimizer goes to the variable that it belongs to, and the next step is that of
Keras 2.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

X = np.random.default_rng(1).standard_normal((8, 4)).astype("float32")
Y = np.random.default_rng(2).standard_normal((8, 2)).astype("float32")
OPTIMIZERS = {
    "sgd": lambda keras: keras.optimizers.SGD(0.05),
    "rate of its own": lambda keras: keras.optimizers.SGD(
        keras.optimizers.schedules.PolynomialDecay(0.1, 5, 0.01, power=2.0)
    ),
    "lion": lambda keras: keras.optimizers.Lion(0.01),
    "adafactor": lambda keras: keras.optimizers.Adafactor(0.01),
    "nadam": lambda keras: keras.optimizers.Nadam(0.01),
    "average": lambda keras: keras.optimizers.SGD(
        0.01, momentum=0.9, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=5
    ),
}


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


def rebuilt(model, folder):
    from savedmodel_migration.keras_2_to_3.rebuild import rebuild

    model.save(folder / "trained", save_format="tf")
    return rebuild(folder / "trained")


def same_name(keras2):
    """Two nested models with a layer of one name and shape: their variables have one path in Keras
    3.
    """
    layers = keras2.layers
    x = keras2.Input((4,))
    inner = [
        keras2.Sequential([layers.Dense(4, name="dense", input_shape=(4,))], name=name)
        for name in ("one", "two")
    ]
    return keras2.Model(x, layers.Dense(2)(inner[1](inner[0](x))))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_next_steps_are_those_of_keras_2(keras2, tmp_path, name):
    model = same_name(keras2)
    model.compile(OPTIMIZERS[name](keras2), "mse")
    model.fit(X, Y, epochs=3, verbose=0, shuffle=False)
    found = rebuilt(model, tmp_path)
    assert not found.notes
    for keras_model in (model, found.model):
        for _ in range(2):
            keras_model.train_on_batch(X, Y)
    np.testing.assert_allclose(found.model(X), model(X), rtol=1e-4, atol=1e-5)


def test_layers_of_one_name_in_nested_models_are_told_apart_by_the_proof(keras2, tmp_path):
    model = same_name(keras2)
    model.save(tmp_path / "same_name", save_format="tf")
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "same_name"), "--out", str(tmp_path / "out")],
    )
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out/records/same_name.json").read_text())["status"] == "rebuilt"


def test_what_was_frozen_after_training_gets_no_state_of_another_layer(keras2, tmp_path):
    """The optimizer lists its slots in the order of the variables that trained then."""
    layers = keras2.layers
    model = keras2.Sequential([layers.Dense(2, input_shape=(2,)), layers.Dense(2), layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(X[:, :2], Y, epochs=3, verbose=0)
    state = {variable.name: variable.numpy() for variable in model.optimizer.variables}
    model.layers[0].trainable = False
    found = rebuilt(model, tmp_path)
    (note,) = found.notes
    assert "4 values" in note
    optimizer = found.model.optimizer
    for place, name in enumerate(
        ("dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias")
    ):
        (kept,) = (
            value
            for key, value in state.items()
            if key.startswith("Adam/m/") and key.endswith(_counted(name, state))
        )
        np.testing.assert_array_equal(optimizer._momentums[place].numpy(), kept)


def _counted(name, state):
    """Return the name of a variable as this process has counted layers: `dense_7/kernel:0` for the
    second Dense of a model.
    """
    layer, _, part = name.partition("/")
    layers = sorted(
        {key.split("/")[2] for key in state if "/m/" in key}, key=lambda text: (len(text), text)
    )
    return f"/{layers[int(layer.rpartition('_')[2])]}/{part}:0"


def test_functions_that_were_registered_are_found_by_the_names_that_the_user_gave(keras2, tmp_path):
    import keras

    def distance(y, predicted):
        return abs(y - predicted)

    register = keras2.utils.register_keras_serializable("mine")
    model = keras2.Sequential([keras2.layers.Dense(2, input_shape=(4,))])
    model.compile("sgd", register(distance), metrics=[distance])
    model.fit(X, Y, verbose=0)
    found = rebuilt(model, tmp_path)
    assert (
        len(found.notes) == 1
        and "'mine>distance'" in found.notes[0]
        and "--custom-objects" in found.notes[0]
    )
    from savedmodel_migration.keras_2_to_3.rebuild import rebuild

    found = rebuild(tmp_path / "trained", {"distance": distance})
    assert not found.notes
    found.model.save(tmp_path / "new.keras")
    new = keras.saving.load_model(tmp_path / "new.keras", custom_objects={"distance": distance})
    np.testing.assert_allclose(new.test_on_batch(X, Y)[0], model.test_on_batch(X, Y)[0], rtol=1e-5)


def test_an_output_without_metrics_does_not_keep_the_model_from_training(keras2, tmp_path):
    layers = keras2.layers
    x = keras2.Input((4,))
    model = keras2.Model(x, [layers.Dense(2, name="plain")(x), layers.Dense(2, name="measured")(x)])
    model.compile("sgd", "mse", metrics={"measured": ["mae"]})
    model.fit(X, [Y, Y], verbose=0)
    new = rebuilt(model, tmp_path).model
    before, after = (keras_model.test_on_batch(X, [Y, Y]) for keras_model in (model, new))
    np.testing.assert_allclose(after, before, rtol=1e-5)
