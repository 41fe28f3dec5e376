"""``migrate --to keras``, end to end: real models of Keras 2, the command, Keras 3 in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from compat_matrix import cli

pytestmark = pytest.mark.tensorflow

PREDICT = """
import sys
import numpy as np, keras
model = keras.models.load_model(sys.argv[1])
assert not any(name.split(".")[0] in ("compat_matrix", "reference_impl") for name in sys.modules)
np.save(sys.argv[3], model.predict(np.load(sys.argv[2]), verbose=0))
"""


def migrate(*arguments):
    return CliRunner().invoke(cli.main, ["migrate", "--to", "keras", *map(str, arguments)])


def record_of(out, name):
    return json.loads((out / f"records/{name}.json").read_text())


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip("tf_keras", reason="tf_keras writes the models: pip install tf_keras")


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
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def test_a_custom_layer_is_refused_with_its_place_and_what_helps(keras2, tmp_path):
    class Doubled(keras2.layers.Layer):
        def call(self, x):
            return 2 * x

    keras2.Sequential([keras2.layers.Dense(2, input_shape=(3,)), Doubled()]).save(tmp_path / "custom", save_format="tf")
    result = migrate(tmp_path / "custom", "--out", tmp_path / "out")
    assert result.exit_code == 1
    record = record_of(tmp_path / "out", "custom")
    assert record["status"] == "refused"
    assert "Doubled" in record["reason"] and "--custom-objects" in record["fix"]
    assert not (tmp_path / "out/models").exists() or not list((tmp_path / "out/models").rglob("*.keras"))
