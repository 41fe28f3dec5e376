"""``migrate --to keras`` of models with a layer that cannot be rebuilt: that layer is cut out of
the SavedModel and wrapped.
"""

from __future__ import annotations

import json
import shutil

import fresh_tensorflow
import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

# Train a step, save, load, and predict: what a user does with the file.
TRAIN = """
import sys
import numpy as np, keras
import savedmodel_compat.keras
model, data = keras.saving.load_model(sys.argv[1], safe_mode=False), np.load(sys.argv[2])
given = [data[name] for name in sorted(data) if name != "y"]
model.compile(keras.optimizers.SGD(0.1), "mse")
model.train_on_batch(given if len(given) > 1 else given[0], data["y"])
model.save(sys.argv[3])
again = keras.saving.load_model(sys.argv[3], safe_mode=False)
np.save(sys.argv[4], again.predict(given if len(given) > 1 else given[0], verbose=0))
"""


def migrate(*arguments):
    return CliRunner().invoke(cli.main, ["migrate", "--to", "keras", *map(str, arguments)])


def migrated(folder, name, *arguments):
    """Migrate one model that must end in the output; return its record."""
    result = migrate(folder / name, "--out", folder / "out", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads((folder / f"out/records/{name}.json").read_text())


def after_a_step(folder, name, y, **inputs):
    """What the new model predicts after a step of training in a fresh process, and after it was
    saved and loaded again.
    """
    np.savez(folder / "data.npz", y=y, **inputs)
    paths = [
        folder / f"out/models/{name}/model.keras",
        folder / "data.npz",
        folder / "again.keras",
        folder / "answer.npy",
    ]
    fresh_tensorflow.printed(TRAIN, *paths)
    return np.load(paths[-1])


def edit(folder, change):
    """Change the configuration of every layer in the metadata of the root."""
    edit_entries(folder, lambda entry: change(entry["config"]))


def edit_entries(folder, change):
    """Change the entry of every layer in the metadata of the root."""
    path = folder / "keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    root = next(item for item in metadata.nodes if item.node_id == 0)
    found = json.loads(root.metadata)
    for config in (found["config"], found["model_config"]["config"]):
        for entry in config["layers"]:
            change(entry)
    root.metadata = json.dumps(found)
    path.write_bytes(metadata.SerializeToString())


def states(record):
    return {item["what"]: item["state"] for item in record["parts"][0]["verdicts"]}


PROVED = {"predictions", "saved file", "weights", "gradients", "training step"}


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


@pytest.fixture(scope="module")
def layers(keras2):
    """A custom layer with weights and a loss, and one that takes two tensors."""

    class Scaled(keras2.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(
                name="scale", shape=shape[-1:], initializer="uniform", regularizer="l2"
            )
            self.inner = keras2.layers.Dense(3, name="inner")

        def call(self, x, training=None):
            return self.inner(x * self.scale) + (1.0 if training else 0.0)

    class Mixed(keras2.layers.Layer):
        def call(self, first, second):
            return 0.25 * first + 0.75 * second

    return Scaled, Mixed


def test_a_model_trains_as_before_with_two_wrapped_layers_of_one_class(keras2, layers, tmp_path):
    scaled, mixed = layers
    a, b = keras2.Input((4,), name="a"), keras2.Input((4,), name="b")
    inner = keras2.Model(
        a, scaled(name="one")(keras2.layers.Dense(4, activation="tanh")(a)), name="nested"
    )
    joined = mixed(name="mixed")(inner(a), scaled(name="two")(b))
    model = keras2.Model([a, b], keras2.layers.Dense(2)(joined))
    model.compile(keras2.optimizers.SGD(0.1), "mse")
    random = np.random.default_rng(3)
    x = {name: random.standard_normal((6, 4)).astype("float32") for name in "ab"}
    y = random.standard_normal((6, 2)).astype("float32")
    model.save(tmp_path / "mixed", save_format="tf")
    record = migrated(tmp_path, "mixed")
    assert record["status"] == "partial"
    # A layer without weights is made of its graph.
    assert [
        text in record["reason"] for text in ("Scaled 'one'", "Scaled 'two'", "Mixed 'mixed'")
    ] == [True, True, False]
    assert set(states(record)) == PROVED and set(states(record).values()) <= {"equal", "close"}
    assert len(set(record["parts"][0]["names"].values())) == len(model.weights), (
        "every weight is compared, under its own name"
    )
    model.train_on_batch([x["a"], x["b"]], y)
    got = after_a_step(tmp_path, "mixed", y, **x)
    np.testing.assert_allclose(
        got, model.predict([x["a"], x["b"]], verbose=0), rtol=1e-5, atol=1e-6
    )


def test_the_optimizer_keeps_its_state_for_a_wrapped_layer(keras2, layers, tmp_path):
    model = keras2.Sequential([layers[0](input_shape=(4,)), keras2.layers.Dense(2)])
    model.compile(keras2.optimizers.Adam(0.01), "mse")
    random = np.random.default_rng(4)
    x, y = (
        random.standard_normal((8, 4)).astype("float32"),
        random.standard_normal((8, 2)).astype("float32"),
    )
    model.fit(x, y, epochs=3, verbose=0)
    model.save(tmp_path / "trained", save_format="tf")
    record = migrated(tmp_path, "trained")
    assert record["status"] == "partial"
    assert not [note for note in record["parts"][0]["notes"] if "optimizer" in note]
    model.train_on_batch(x, y)
    script = TRAIN.replace('model.compile(keras.optimizers.SGD(0.1), "mse")\n', "")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    paths = [
        tmp_path / "out/models/trained/model.keras",
        tmp_path / "data.npz",
        tmp_path / "again.keras",
        tmp_path / "y.npy",
    ]
    fresh_tensorflow.printed(script, *paths)
    np.testing.assert_allclose(
        np.load(paths[-1]), model.predict(x, verbose=0), rtol=1e-4, atol=1e-5
    )


def test_a_layer_whose_weights_do_not_fit_its_configuration_is_wrapped(keras2, tmp_path):
    layers = keras2.layers
    model = keras2.Sequential([layers.Dense(3, input_shape=(4,)), layers.Dense(2, use_bias=False)])
    model.save(tmp_path / "unbiased", save_format="tf")
    edit(
        tmp_path / "unbiased",
        lambda config: config.update(use_bias=False) if "use_bias" in config else None,
    )
    record = migrated(tmp_path, "unbiased")
    assert record["status"] == "partial" and "holds bias" in record["reason"]
    assert [line.split(": ")[1] for line in record["parts"][0]["tree"]] == [
        "SavedModelLayer",
        "Dense",
    ]


def test_a_layer_that_is_not_what_its_configuration_says_is_made_of_its_graph(keras2, tmp_path):
    layers = keras2.layers
    model = keras2.Sequential(
        [layers.Dense(3, activation="tanh", input_shape=(4,)), layers.Dense(2)]
    )
    model.save(tmp_path / "other", save_format="tf")
    edit(
        tmp_path / "other",
        lambda config: (
            config.update(activation="relu") if config.get("activation") == "tanh" else None
        ),
    )
    record = migrated(tmp_path, "other")
    assert record["status"] == "rebuilt" and set(states(record).values()) == {"equal"}
    (note,) = record["parts"][0]["notes"]
    assert note.startswith("layer Dense 'dense") and "layer of Keras" in note
    assert record["parts"][0]["tree"][1].endswith("_relu: Functional")
    x = np.random.default_rng(1).standard_normal((5, 4)).astype("float32")
    y = np.zeros((5, 2), "float32")
    model.compile(keras2.optimizers.SGD(0.1), "mse")
    model.train_on_batch(x, y)
    np.testing.assert_allclose(
        after_a_step(tmp_path, "other", y, x=x), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6
    )


ATTACKS = {
    "a_class_of_a_module": {
        "class_name": "os>system",
        "config": {"name": "attacked", "command": "touch {place}"},
    },
    "bytecode": {
        "class_name": "Lambda",
        "config": {"name": "attacked", "function": ["4wEA", None, None]},
    },
    "a_function_of_a_module": {
        "config": {"activation": {"class_name": "function", "module": "os", "config": "system"}}
    },
    "a_matrix_larger_than_memory": {"config": {"units": 10**13}},
}


def test_a_layer_with_an_attack_in_its_configuration_is_wrapped_without_its_configuration(
    keras2, tmp_path
):
    layers = keras2.layers
    model = keras2.Sequential(
        [layers.Dense(3, name="attacked", input_shape=(4,)), layers.Dense(2, activation="tanh")]
    )
    model.save(tmp_path / "sound", save_format="tf")
    place = tmp_path / "was_here"
    for name, change in ATTACKS.items():
        change = json.loads(json.dumps(change).replace("{place}", str(place)))

        def attack(entry, change=change):
            if entry["config"].get("name") == "attacked":
                whole = "class_name" in change
                entry.update(
                    change if whole else {"config": {**entry["config"], **change["config"]}}
                )

        shutil.copytree(tmp_path / "sound", tmp_path / "zoo" / name)
        edit_entries(tmp_path / "zoo" / name, attack)
    result = migrate(tmp_path / "zoo", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    for name in ATTACKS:
        record = json.loads((tmp_path / f"out/records/{name}.json").read_text())
        assert record["status"] == "partial", (name, record["reason"])
        assert [line.split(": ")[1] for line in record["parts"][0]["tree"]] == [
            "SavedModelLayer",
            "Dense",
        ]
    assert not place.exists()


def test_a_layer_that_two_nested_models_share_stays_one(keras2, tmp_path):
    """Keras 3 itself would load two layers from the file of such a model."""
    layers = keras2.layers
    shared = layers.Dense(4, activation="tanh", name="shared")
    towers = []
    for name in ("left", "right"):
        entry = keras2.Input((4,))
        towers.append(keras2.Model(entry, layers.Dense(3)(shared(entry)), name=name))
    x = keras2.Input((4,))
    model = keras2.Model(x, layers.Add()([tower(x) for tower in towers]))
    model.save(tmp_path / "towers", save_format="tf")
    record = migrated(tmp_path, "towers")
    assert record["status"] == "wrapped" and "Dense 'shared': " in record["reason"]
    assert len(record["parts"][0]["names"]) == len(model.weights) == 6


def test_a_layer_in_part_of_a_plan(keras2, layers, tmp_path):
    model = keras2.Sequential([keras2.layers.Dense(4, input_shape=(4,)), layers[0]()])
    model.save(tmp_path / "mixed", save_format="tf")
    result = migrate(tmp_path / "mixed", "--out", tmp_path / "out", "--dry-run")
    assert (
        result.exit_code == 0 and "rebuild in part: " in result.stdout and "Scaled" in result.stdout
    )
