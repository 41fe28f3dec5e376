"""The drop-in layers beside the layers that they replace: `hub.KerasLayer` and
`keras.layers.TFSMLayer`.

Each pair of layers gets the same model, inputs and `training`. Compared are answers, trainable
weights, losses, gradients, and what the call leaves in the weights (moving averages, counters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow
keras = pytest.importorskip("keras", minversion="3")

import tensorflow as tf  # noqa: E402

from savedmodel_compat.keras import KerasLayer, TFSMLayer  # noqa: E402

X = np.linspace(-1, 1, 24).reshape(6, 4).astype("float32")
SPEC = tf.TensorSpec([None, 4], tf.float32, name="x")


@pytest.fixture(scope="module")
def hub():
    return pytest.importorskip(
        "tensorflow_hub", reason="hub.KerasLayer: pip install tensorflow_hub"
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Name -> folder of a SavedModel."""
    folder = tmp_path_factory.mktemp("models")
    for name, save in MODELS.items():
        save(folder / name)
    return folder


def keras_2(*layers):
    old = pytest.importorskip("tf_keras", reason="tf_keras writes the models: pip install tf_keras")
    return old.Sequential([old.Input((4,)), *(make(old.layers) for make in layers)])


def batch_norm(path):
    net = keras_2(
        lambda layers: layers.Dense(
            5, kernel_regularizer="l2", bias_regularizer="l1", name="first"
        ),
        lambda layers: layers.BatchNormalization(name="norm", beta_regularizer="l2"),
        lambda layers: layers.Dense(3, trainable=False, name="frozen", kernel_regularizer="l2"),
    )
    net.set_weights([weight + 0.1 for weight in net.get_weights()])
    net.save(path, save_format="tf")


def dropout(path):
    keras_2(
        lambda layers: layers.Dropout(0.5, seed=7), lambda layers: layers.Dense(2, name="last")
    ).save(path, save_format="tf")


def nested(path):
    old = pytest.importorskip("tf_keras")
    inner = keras_2(
        lambda layers: layers.Dense(4, kernel_regularizer="l2"),
        lambda layers: layers.BatchNormalization(),
    )
    old.Sequential([old.Input((4,)), inner, old.layers.Dense(2, kernel_regularizer="l1")]).save(
        path, save_format="tf"
    )


class Reusable(tf.train.Checkpoint):
    """A model as TensorFlow Hub has them, with several signatures and a counter of calls in
    training.
    """

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.eye(4, 2, dtype="float32"), name="w")
        self.fixed = tf.Variable([2.0, 3.0], trainable=False, name="fixed")
        self.steps = tf.Variable(0, trainable=False, name="steps")
        self.trainable_variables, self.variables = [self.w], [self.w, self.fixed, self.steps]
        self.regularization_losses = [
            tf.function(lambda: tf.reduce_sum(tf.square(self.w)) * 0.5, input_signature=[])
        ]

    @tf.function
    def __call__(self, x, training=False):
        if training:
            self.steps.assign_add(1)
            return x @ self.w * self.fixed * 2.0
        return x @ self.w * self.fixed

    @tf.function(input_signature=[SPEC])
    def evaluate(self, x):
        return {"a": self(x, training=False), "b": x}

    @tf.function(input_signature=[SPEC])
    def train(self, x):
        return {"a": self(x, training=True), "b": x}


def reusable(path):
    root = Reusable()
    for training in (False, True):
        root.__call__.get_concrete_function(SPEC, training=training)
    tf.saved_model.save(
        root,
        path,
        signatures={"both": root.evaluate, "alone": tf.function(lambda x: {"b": x}, [SPEC])},
    )


def hub_module_1(path):
    """A module of TF 1.x: a graph for inference and another one for training."""
    v1 = tf.compat.v1
    builder = v1.saved_model.Builder(str(path))
    for tags, factor in (([], 1.0), (["train"], 2.0)):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 4], name="x")
            w = v1.get_variable(
                "w", initializer=np.eye(4, 3, dtype="float32") * 3, use_resource=True
            )
            answer = {"default": x @ w * factor, "w": x @ w}
            signatures = {
                name: v1.saved_model.signature_def_utils.predict_signature_def({"x": x}, outputs)
                for name, outputs in (
                    ("default", answer),
                    ("other", {"default": -answer["default"]}),
                )
            }
            session.run(v1.global_variables_initializer())
            if tags:
                builder.add_meta_graph(tags, signature_def_map=signatures)
            else:
                builder.add_meta_graph_and_variables(session, tags, signature_def_map=signatures)
    builder.save()
    (path / "tfhub_module.pb").write_bytes(b"\x08\x03")


def exported(path):
    """Of Keras 3, with functions of their own for training and inference."""
    x = keras.Input((4,))
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(5, kernel_regularizer="l2")(x))
    model = keras.Model(x, keras.layers.Dense(2)(hidden))
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", lambda x: model(x, training=False), [SPEC])
    archive.add_endpoint("train", lambda x: model(x, training=True), [SPEC])
    archive.write_out(path, verbose=False)


MODELS = {
    "batch_norm": batch_norm,
    "dropout": dropout,
    "nested": nested,
    "reusable": reusable,
    "hub_module_1": hub_module_1,
    "exported": exported,
}


@dataclass
class Told:
    answers: dict[str, Any]
    trainable: list[str]
    losses: float
    gradients: dict[str, Any]
    after: dict[str, Any]


def told(layer, training):
    """What a layer does when it is called."""
    trainable = list(layer.trainable_weights)
    with tf.GradientTape() as tape:
        answer = layer(tf.constant(X), training=training)
        loss = tf.add_n([tf.constant(0.0), *layer.losses])
        total = loss + tf.add_n(
            [tf.reduce_sum(tf.square(item)) for item in tf.nest.flatten(answer)]
        )
    values = [
        weight.value if isinstance(weight, keras.Variable) else weight for weight in trainable
    ]
    gradients = tape.gradient(total, values)
    return Told(
        answers=dict(answer) if isinstance(answer, dict) else {"": answer},
        trainable=sorted(map(name_of, trainable)),
        losses=float(loss),
        gradients={
            name_of(weight): found
            for weight, found in zip(trainable, gradients)
            if found is not None
        },
        after={name_of(weight): np.asarray(weight) for weight in layer.weights},
    )


def name_of(weight):
    return weight.name.split(":")[0].replace("/", "_")


def assert_same(ours, theirs):
    for what in ("answers", "gradients", "after"):
        one, other = getattr(ours, what), getattr(theirs, what)
        assert one.keys() == other.keys(), what
        for name in one:
            np.testing.assert_allclose(
                one[name], other[name], rtol=1e-5, atol=1e-6, err_msg=f"{what} {name}"
            )
    assert ours.trainable == theirs.trainable
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-5)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("name", ["batch_norm", "dropout", "nested", "reusable"])
def test_beside_the_layer_of_tensorflow_hub(hub, models, name, trainable, training):
    ours, theirs = (
        KerasLayer(models / name, trainable=trainable),
        hub.KerasLayer(str(models / name), trainable=trainable),
    )
    before = {name_of(weight): np.asarray(weight) for weight in ours.weights}
    mine, other = told(ours, training), told(theirs, training)
    if name == "nested" and trainable:  # tensorflow_hub adds losses of the outer model only
        assert mine.losses > other.losses > 0
        mine.losses, mine.gradients = other.losses, other.gradients
    assert_same(mine, other)
    changed = any(not np.array_equal(before[key], value) for key, value in mine.after.items())
    assert changed == (training and trainable and name != "dropout"), "statistics and counters"


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "arguments", [{"signature": "both", "signature_outputs_as_dict": True}, {"signature": "both",
    "output_key": "b"}, {"signature": "alone", "output_key": "b"}],
)  # fmt: skip
def test_signatures_beside_those_of_the_layer_of_tensorflow_hub(hub, models, arguments, training):
    ours, theirs = (
        KerasLayer(models / "reusable", **arguments),
        hub.KerasLayer(str(models / "reusable"), **arguments),
    )
    assert_same(told(ours, training), told(theirs, training))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "arguments", [{}, {"output_key": "w"}, {"signature_outputs_as_dict": True},
    {"signature": "other", "output_key": "default"}, {"tags": ["train"]}],
)  # fmt: skip
def test_a_hub_module_of_tf_1_beside_the_layer_of_tensorflow_hub(hub, models, arguments, training):
    """Both call the graph of the tags, whatever `training` says; the one for inference has no
    tags.
    """
    ours, theirs = (
        KerasLayer(models / "hub_module_1", **arguments),
        hub.KerasLayer(str(models / "hub_module_1"), **arguments),
    )
    assert_same(told(ours, training), told(theirs, training))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize(
    ("name", "endpoints"), [("exported", {}), ("exported", {"call_training_endpoint": "train"}),
    ("reusable", {"call_endpoint": "both"}), ("reusable", {"call_endpoint": "evaluate",
    "call_training_endpoint": "train"}), ("batch_norm", {"call_endpoint": "serving_default"}),
    ("batch_norm", {"call_endpoint": "__call__"})],
)  # fmt: skip
def test_beside_the_layer_of_keras(models, name, endpoints, trainable, training):
    ours = TFSMLayer(models / name, trainable=trainable, **endpoints)
    theirs = keras.layers.TFSMLayer(str(models / name), trainable=trainable, **endpoints)
    mine, other = told(ours, training), told(theirs, training)
    assert other.losses == 0, "keras.layers.TFSMLayer knows no losses of its SavedModel"
    assert (mine.losses > 0) == (trainable and name != "exported")
    mine.losses, mine.gradients = other.losses, other.gradients
    # All weights of the SavedModel are there, not only those of the function, and train if they did
    # when it was saved.
    assert {*mine.after} - {*other.after} == (
        {"steps"} if endpoints == {"call_endpoint": "both"} else set()
    )
    mine.after = {key: value for key, value in mine.after.items() if key in other.after}
    frozen = {key for key in other.trainable if key.startswith("frozen_")}
    other.trainable = [key for key in other.trainable if key not in frozen]
    assert bool(frozen) == (trainable and name == "batch_norm")
    assert_same(mine, other)
