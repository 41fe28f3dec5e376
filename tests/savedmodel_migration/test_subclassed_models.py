"""``migrate --to keras`` of subclassed models: those that only call layers of Keras are rebuilt as
functional ones.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow
X = np.linspace(-1, 1, 40).reshape(10, 4).astype("float32")


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


def saved(keras2, call, folder):
    """A model of a class of its own, with layers in attributes and in a list."""

    class Net(keras2.Model):
        def __init__(self):
            super().__init__()
            self.first = keras2.layers.Dense(5, activation="relu", kernel_regularizer="l2")
            self.norm, self.drop = keras2.layers.BatchNormalization(), keras2.layers.Dropout(0.5)
            self.blocks = [keras2.layers.Dense(5), keras2.layers.Add()]

        def call(self, x, training=False):
            return call(self, x, training)

    net = Net()
    net.compile("adam", "mse")
    net.fit(X, np.ones((10, 5)), epochs=1, verbose=0)
    net.save(folder, save_format="tf")


def of_layers(net, x, training):
    x = net.norm(net.first(x), training=training)
    return net.blocks[1]([x, net.drop(net.blocks[0](x), training=training)])


def twice(net, x, training):
    x = net.blocks[0](net.blocks[0](net.norm(net.first(x), training=training)))
    return net.blocks[1]([x, net.drop(x, training=training)])


def with_an_operation(net, x, training):
    return of_layers(net, x, training) * 2.0


def otherwise_in_training(net, x, training):
    x = of_layers(net, x, training)
    return net.blocks[0](x) if training else x


def migrated(folder, tmp_path):
    result = CliRunner().invoke(
        cli.main, ["migrate", "--to", "keras", str(folder), "--out", str(tmp_path / "out")]
    )
    return result, {
        path.stem: json.loads(path.read_text()) for path in (tmp_path / "out/records").iterdir()
    }


def test_a_subclassed_model_that_only_calls_layers_is_rebuilt_and_others_are_wrapped(
    keras2, tmp_path
):
    for call in (of_layers, twice, with_an_operation, otherwise_in_training):
        saved(keras2, call, tmp_path / "zoo" / call.__name__)
    result, records = migrated(tmp_path / "zoo", tmp_path)
    assert {name: record["status"] for name, record in records.items()} == {
        "of_layers": "rebuilt", "twice": "rebuilt", "with_an_operation": "wrapped",
        "otherwise_in_training": "wrapped",
    }, result.output  # fmt: skip
    notes = json.dumps(records["of_layers"])
    assert "methods of" in notes
    assert "Python code" in records["with_an_operation"]["reason"]


def test_a_model_without_an_argument_for_training_and_one_that_returns_a_dict(keras2, tmp_path):
    class Net(keras2.Model):
        def __init__(self, wrap):
            super().__init__()
            self.first, self.wrap = keras2.layers.Dense(5), wrap

        def call(self, x):
            return self.wrap(self.first(x))

    for name, wrap in (
        ("tensor", lambda answer: answer),
        ("dict", lambda answer: {"answer": answer}),
    ):
        net = Net(wrap)
        net(X)
        net.save(tmp_path / "zoo" / name, save_format="tf")
    result, records = migrated(tmp_path / "zoo", tmp_path)
    found = {name: record["status"] for name, record in records.items()}
    assert found == {
        "tensor": "rebuilt",
        "dict": "wrapped",
    }, result.output  # a functional model would not return the dict
