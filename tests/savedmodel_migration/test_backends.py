"""Rebuilt models on JAX and on PyTorch, in a process without TensorFlow."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

PREDICT = """
import sys
from savedmodel_migration.keras_models.table import WithoutTensorFlow
sys.meta_path[:] = map(WithoutTensorFlow, sys.meta_path)
import keras, numpy
model = keras.saving.load_model(sys.argv[1])
with numpy.load(sys.argv[2]) as given:
    answer = model.predict([given[name] for name in sorted(given)], verbose=0)
assert keras.backend.backend() == sys.argv[4] and "tensorflow" not in sys.modules
numpy.save(sys.argv[3], answer)
"""


def interpreter(backend):
    """The Python that has the backend: this one, or that of the variable."""
    variable = f"COMPAT_PYTHON_{backend.upper()}"
    python = os.environ.get(variable) or (
        sys.executable if importlib.util.find_spec(backend) else None
    )
    if python is None:
        pytest.skip(
            f"{backend} is not installed: tox -e keras-models,keras-{backend}, or name a Python"
            f" that has it in {variable}"
        )
    return python


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folder -> inputs and what Keras 2 predicts; the rebuilt models are beside."""
    keras2 = pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )
    layers, folder = keras2.layers, tmp_path_factory.mktemp("backends")
    images = keras2.Sequential([
        keras2.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D(),
        layers.DepthwiseConv2D(2, padding="same"), layers.Flatten(), layers.Dense(3, activation="softmax"),
    ])  # fmt: skip
    steps = keras2.Sequential([
        keras2.Input((5, 4)), layers.Masking(), layers.Bidirectional(layers.LSTM(3, return_sequences=True)), layers.GRU(2),
        layers.Dense(2, activation="hard_sigmoid"),
    ])  # fmt: skip
    one, other = keras2.Input((5, 4)), keras2.Input((5, 4))
    attention = layers.MultiHeadAttention(2, 3)(one, other) + layers.Attention(causal=True)(
        [one, other]
    )
    mixed = keras2.Model([one, other], layers.LayerNormalization()(attention[:, 1:] * 2.0))
    random, found = np.random.default_rng(0), {}
    for name, model in (("images", images), ("steps", steps), ("mixed", mixed)):
        model.save(folder / "zoo" / name, save_format="tf")
        given = [
            random.standard_normal((3, *entry.shape[1:])).astype("float32")
            for entry in model.inputs
        ]
        found[name] = (given, model.predict(given, verbose=0))
    result = CliRunner().invoke(
        cli.main, ["migrate", "--to", "keras", str(folder / "zoo"), "--out", str(folder / "out")]
    )
    assert "3 rebuilt" in result.output, result.output
    return folder, found


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_rebuilt_model_predicts_the_same_on_another_backend(backend, request, tmp_path):
    python = interpreter(backend)
    folder, found = request.getfixturevalue("models")
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.fspath(request.config.rootpath),
    }
    assert len(found) == 3
    for name, (given, expected) in found.items():
        np.savez(tmp_path / "x.npz", *given)
        files = [
            str(folder / f"out/models/{name}/model.keras"),
            str(tmp_path / "x.npz"),
            str(tmp_path / "y.npy"),
            backend,
        ]
        subprocess.run([python, "-c", PREDICT, *files], check=True, env=environment)
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-5)
