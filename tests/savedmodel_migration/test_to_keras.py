"""``migrate --to keras``, end to end: real models of Keras 2, the command, Keras 3 in a process of
its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import fresh_tensorflow
import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

PREDICT = """
import sys
import numpy as np, keras
model = keras.models.load_model(sys.argv[1])
assert not any(name.split(".")[0] in ("compat_matrix", "reference_impl") or name.startswith("savedmodel_") for name in sys.modules)
np.save(sys.argv[3], model.predict(np.load(sys.argv[2]), verbose=0))
"""


def migrate(*arguments):
    return CliRunner().invoke(cli.main, ["migrate", "--to", "keras", *map(str, arguments)])


def record_of(out, name):
    return json.loads((out / f"records/{name}.json").read_text())


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


@pytest.mark.clause("GOAL-12")
def test_a_sequential_model_predicts_as_before_in_a_process_without_this_project(keras2, tmp_path):
    model = keras2.Sequential(
        [
            keras2.layers.Dense(8, activation="relu", input_shape=(5,)),
            keras2.layers.LeakyReLU(alpha=0.1),
            keras2.layers.Dense(3, kernel_regularizer=keras2.regularizers.L2(0.01)),
        ]
    )
    model.save(tmp_path / "zoo/small", save_format="tf")
    result = migrate(tmp_path / "zoo/small", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "small")
    assert record["status"] == "rebuilt"
    assert next(item["state"] for item in record["parts"][0]["verdicts"]) == "equal"
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [
        sys.executable,
        "-c",
        PREDICT,
        *(str(tmp_path / name) for name in ("out/models/small/model.keras", "x.npy", "y.npy")),
    ]
    subprocess.run(command, check=True, env={**kept, "KERAS_BACKEND": "tensorflow"})
    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6
    )


def test_a_custom_layer_is_refused_with_its_place_and_what_helps(keras2, tmp_path):
    class Scaled(keras2.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=shape[-1:])

        def call(self, x):
            return self.scale * x

    keras2.Sequential([keras2.layers.Dense(2, input_shape=(3,)), Scaled()]).save(
        tmp_path / "custom", save_format="tf"
    )
    result = migrate(tmp_path / "custom", "--no-wrap", "--out", tmp_path / "out")
    assert result.exit_code == 1
    record = record_of(tmp_path / "out", "custom")
    assert record["status"] == "refused"
    assert "Scaled" in record["reason"] and "--custom-objects" in record["fix"]
    assert not (tmp_path / "out/models").exists() or not list(
        (tmp_path / "out/models").rglob("*.keras")
    )


ATTACKS = {
    "loads_a_saved_model": {
        "class_name": "TFSMLayer",
        "config": {"name": "dense", "filepath": "/etc"},
    },
    "a_class_of_a_module": {
        "class_name": "os>system",
        "module": "os",
        "config": {"name": "dense", "command": "touch {place}"},
    },
    "a_matrix_larger_than_memory": {"units": 10**13},
    "a_function_of_a_module": {
        "activation": {"class_name": "function", "module": "os", "config": "system"}
    },
    "an_initializer_of_a_module": {
        "kernel_initializer": {
            "class_name": "system",
            "module": "os",
            "registered_name": "system",
            "config": {"command": "touch {place}"},
        }
    },
    "bytecode": {
        "class_name": "Lambda",
        "config": {"name": "dense", "function": ["4wEA", None, None]},
    },
    "a_vocabulary_of_the_machine": {
        "class_name": "StringLookup",
        "config": {"name": "dense", "vocabulary": "/etc/passwd"},
    },
    "a_dtype_policy": {
        "dtype": {"class_name": "system", "module": "os", "config": {"name": "touch {place}"}}
    },
    "an_argument_of_another_type": {"units": {"class_name": "Dense", "config": {"units": 3}}},
    "a_layer_in_itself": {
        "class_name": "TimeDistributed",
        "config": {"layer": {"class_name": "Wrapper", "config": {}}},
    },
}


def attacked(folder, change):
    """A model whose configuration of the only layer is changed."""
    path = folder / "keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    root = next(item for item in metadata.nodes if item.node_id == 0)
    found = json.loads(root.metadata)
    for config in (found["config"], found["model_config"]["config"]):
        entry = next(item for item in config["layers"] if item["class_name"] == "Dense")
        if "class_name" in change:
            entry.update(change)
        else:
            entry["config"].update(change)
    root.metadata = json.dumps(found)
    path.write_bytes(metadata.SerializeToString())


def test_a_configuration_names_only_what_keras_has_and_runs_nothing(keras2, tmp_path):
    model = keras2.Sequential([keras2.layers.Dense(3, input_shape=(4,), name="dense")])
    model.save(tmp_path / "sound", save_format="tf")
    place = tmp_path / "was_here"
    for name, change in ATTACKS.items():
        shutil.copytree(tmp_path / "sound", tmp_path / "zoo" / name)
        attacked(
            tmp_path / "zoo" / name, json.loads(json.dumps(change).replace("{place}", str(place)))
        )
    result = migrate(tmp_path / "zoo", "--no-wrap", "--out", tmp_path / "out")
    assert result.exit_code == 1, result.output
    found = {name: record_of(tmp_path / "out", name) for name in ATTACKS}
    assert {name: record["status"] for name, record in found.items()} == dict.fromkeys(
        ATTACKS, "refused"
    )
    assert not place.exists()
    assert "more weights" in found["a_matrix_larger_than_memory"]["reason"]
    assert "--trust-lambda" in found["bytecode"]["fix"]
    assert "root:" not in json.dumps(found["a_vocabulary_of_the_machine"])


@pytest.mark.clause("GOAL-12")
def test_a_trained_model_goes_on_training_from_the_same_state(keras2, tmp_path):
    random = np.random.default_rng(1)
    x, y = random.standard_normal((2, 16, 4)).astype(np.float32)
    entry = keras2.Input((4,))
    hidden = keras2.layers.Dense(5, activation="tanh")(entry)
    model = keras2.Model(entry, keras2.layers.Dense(4)(hidden + 1.0))
    model.compile(keras2.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(x, y, epochs=2, verbose=0)
    model.save(tmp_path / "trained", save_format="tf")
    assert migrate(tmp_path / "trained", "--out", tmp_path / "out").exit_code == 0
    assert record_of(tmp_path / "out", "trained")["parts"][0]["notes"] == []
    model.train_on_batch(x, y)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    script = """
import sys
import numpy as np, keras
model, data = keras.models.load_model(sys.argv[1]), np.load(sys.argv[2])
model.train_on_batch(data["x"], data["y"])
np.savez(sys.argv[3], *model.get_weights())
"""
    fresh_tensorflow.printed(
        script,
        *(
            tmp_path / name
            for name in ("out/models/trained/model.keras", "data.npz", "weights.npz")
        ),
    )
    with np.load(tmp_path / "weights.npz") as stored:
        for number, expected in enumerate(model.get_weights()):
            np.testing.assert_allclose(stored[f"arr_{number}"], expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_its_checkpoint_is_refused_and_the_missing_file_is_named_once(
    keras2, tmp_path
):
    layers = keras2.layers
    keras2.Sequential([layers.Dense(2, input_shape=(3,))]).save(
        tmp_path / "zoo/plain", save_format="tf"
    )
    shutil.rmtree(tmp_path / "zoo/plain/variables")
    said = (
        "variables.index: no such file: it holds the values of the variables; put variables/ back"
        " beside saved_model.pb"
    )
    assert said in migrate(tmp_path / "zoo", "--out", tmp_path / "out", "--dry-run").output
    migrate(tmp_path / "zoo", "--out", tmp_path / "out")
    record = record_of(tmp_path / "out", "plain")
    assert (
        record["status"] == "refused"
        and record["reason"].endswith(said)
        and record["reason"].count(said) == 1
    )
