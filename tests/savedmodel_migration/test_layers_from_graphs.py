"""``migrate --to keras`` of Lambda layers, custom layers and activations: rebuilt from the ops of
their graph, no code is run.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow
keras = pytest.importorskip("keras", minversion="3")

import tensorflow as tf  # noqa: E402

from savedmodel_migration.keras_2_to_3.building.layer_model import layer_model  # noqa: E402
from savedmodel_migration.keras_2_to_3.reading.layer_graph import layer_graph  # noqa: E402
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras  # noqa: E402
from savedmodel_migration.keras_2_to_3.refused import Refused  # noqa: E402


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


def migrated(folder, tmp_path, *options):
    given = ["migrate", "--to", "keras", str(folder), "--out", str(tmp_path / "out"), *options]
    result = CliRunner().invoke(cli.main, given)
    return result, {
        path.stem: json.loads(path.read_text()) for path in (tmp_path / "out/records").iterdir()
    }


KERNEL = np.random.default_rng(0).standard_normal((3, 6, 2)).astype("float32")


def printed(x):
    tf.print("seen", x)
    return x


def checked(x):
    tf.debugging.assert_less(x, 1e9)
    return x


LAMBDAS = {
    "scaled": lambda x: x / 127.5 - 1.0,
    "unchanged": lambda x: x,
    "normalized": lambda x: tf.math.l2_normalize(x, axis=-1),
    "reshaped by its batch": lambda x: tf.reshape(x, [tf.shape(x)[0], -1]),
    "sliced": lambda x: x[:, 1:, ::2],
    "split": lambda x: tf.split(x, [2, 4], axis=-1)[1][:, :2] * tf.split(x, 2, axis=1)[0][..., :4],
    "unstacked": lambda x: tf.add_n(tf.unstack(x, axis=1)),
    "padded as in a mirror": lambda x: tf.pad(x, [[0, 0], [2, 1], [1, 0]], "REFLECT"),
    "convolved with a constant": lambda x: tf.nn.conv1d(x, KERNEL, 2, "SAME"),
    "pooled": lambda x: tf.nn.max_pool2d(x[..., None], 2, 2, "SAME") + tf.nn.avg_pool2d(x[..., None], 2, 2, "SAME"),
    "of a function": lambda x: tf.function(lambda a: a * 2.0 + tf.function(tf.sin)(a))(x),
    "several": lambda x: [x + 1.0, tf.cast(x > 0, tf.int32)],
    "with arrays": lambda x: x * tf.constant([1.0, 2, 3, 4, 5, 6]) + tf.transpose(tf.constant(KERNEL[:, :4, 0]))[:, :1],
    "with whole numbers": lambda x: tf.cast(x, tf.int64) * tf.constant([1, 2, 3, 4, 5, 6], tf.int64) + 3,
    "summed up": lambda x: tf.cumsum(x, axis=1),
    "checked": lambda x: checked(x) * 2.0,
}  # fmt: skip


REFUSED = {
    "something else in training": lambda x: keras_backend().in_train_phase(x * 2.0, x),
    "RandomStandardNormal": lambda x: x + tf.random.normal([4, 6]),
    "does more than compute a tensor: StringFormat|PrintV2": lambda x: printed(x),
    "Tile of constants": lambda x: x + tf.tile(tf.constant([[1.0]]), [4, 6]),
    "does not depend on its input": lambda x: tf.constant([[1.0]]),
    "While": lambda x: tf.while_loop(
        lambda a: tf.reduce_sum(a) < 100.0, lambda a: a * 2.0 + 1.0, [x]
    )[0],
    "other than a tensor": lambda x: {"a": x},
}


def keras_backend():
    import tf_keras

    return tf_keras.backend


@pytest.fixture(scope="module")
def saved(keras2, tmp_path_factory):
    """A model with a Lambda layer for each case, and where it is saved."""
    entry, folder = keras2.Input((4, 6)), tmp_path_factory.mktemp("lambdas")
    calls = {**LAMBDAS, **REFUSED}
    layers = [
        keras2.layers.Lambda(call, name=f"layer_{number}")
        for number, call in enumerate(calls.values())
    ]
    model = keras2.Model(entry, [layer(entry) for layer in layers])
    model.save(folder, save_format="tf")
    return folder, dict(zip(calls, layers))


def graph_of(folder, name):
    with SavedKeras(folder) as found:
        return layer_graph(found, found.layers_of(found.root)[name].node)


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_lambda_computes_what_its_graph_computes(saved, tmp_path, name):
    old = saved[1][name]
    new = layer_model(graph_of(saved[0], old.name), "new")
    new.save(tmp_path / "new.keras")
    again = keras.models.load_model(tmp_path / "new.keras")
    for batch in (1, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 4, 6)).astype("float32")
        expected, got, loaded = (
            [np.asarray(item) for item in keras.tree.flatten(model(x))]
            for model in (old, new, again)
        )
        assert [item.dtype.name for item in got] == [item.dtype.name for item in expected]
        np.testing.assert_allclose(joined(got), joined(expected), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(joined(loaded), joined(got))


def joined(arrays):
    return np.concatenate([array.astype("float64").ravel() for array in arrays])


@pytest.mark.parametrize("reason", REFUSED)
def test_what_a_graph_of_ops_cannot_say_is_refused(saved, reason):
    with pytest.raises(Refused, match=reason):
        layer_model(graph_of(saved[0], saved[1][reason].name), "new")


def test_models_with_lambdas_custom_layers_and_an_activation_are_rebuilt_without_a_flag(
    keras2, tmp_path
):
    class Mixed(keras2.layers.Layer):
        def call(self, given, scale=1.0):
            return 0.25 * given[0] + scale * given[1]

    def own(x):
        return tf.where(x < 0.0, 0.5 * x, tf.tanh(x))

    layers = keras2.layers
    keras2.Sequential(
        [
            layers.Lambda(lambda x: x / 2.0, input_shape=(4,)),
            layers.Dense(3, activation=own, name="own"),
            layers.Activation(own),
        ]
    ).save(tmp_path / "zoo/sequential", save_format="tf")
    a, b = keras2.Input((4,), name="a"), keras2.Input((4,), name="b")
    mixed = Mixed(name="mixed")([a, layers.Dense(4, activation=own, use_bias=False)(b)], scale=2.0)
    model = keras2.Model([a, b], layers.Dense(1)(mixed))
    model.compile("adam", "mse")
    model.save(tmp_path / "zoo/functional", save_format="tf")
    image = keras2.Input((8, 8, 3))
    convolved = layers.Conv2D(2, 3, activation=own)(image)
    keras2.Model(image, layers.Conv2DTranspose(2, 3, activation=own)(convolved)).save(
        tmp_path / "zoo/images", save_format="tf"
    )
    result, records = migrated(tmp_path / "zoo", tmp_path)
    assert {name: record["status"] for name, record in records.items()} == dict.fromkeys(
        ("sequential", "functional", "images"), "rebuilt"
    ), (result.output, [record["reason"] for record in records.values()])
    told = json.dumps(records)
    assert "Lambda 'lambda'" in told and "its graph" in told and "activation own" in told
    kept = keras.models.load_model(tmp_path / "out/models/sequential/model.keras")  # in safe mode
    assert "Lambda" not in {type(layer).__name__ for layer in kept.layers}


def test_layers_that_take_several_tensors_in_any_structure(keras2, tmp_path):
    class Mixed(keras2.layers.Layer):
        def call(self, first, second, scale=1.0, *, added=None):
            return first * scale - second + (0.0 if added is None else added)

    class OfADictionary(keras2.layers.Layer):
        def call(self, given):
            return {"less": given["b"] - given["a"], "both": given["a"] * given["nested"][0]}[
                "less"
            ] * given["nested"][1]

    class Masked(keras2.layers.Layer):
        def call(self, x, mask=None):
            return x if mask is None else x * tf.cast(mask, x.dtype)[..., None]

    layers = keras2.layers
    z, a, b = (keras2.Input((4,), name=name) for name in "zab")
    mixed = Mixed(name="mixed")(z, a, scale=2.0, added=b)
    found = OfADictionary(name="of")({"b": mixed, "nested": [a, z], "a": b})
    keras2.Model([z, a, b], layers.Dense(2)(found)).save(tmp_path / "zoo/several", save_format="tf")
    tokens, length = keras2.Input((5,), dtype="int32"), keras2.Input((5,))
    masked = Masked(name="masked")(layers.Embedding(7, 4)(tokens), mask=length > 0)
    keras2.Model([tokens, length], layers.Dense(1)(masked)).save(
        tmp_path / "zoo/masked", save_format="tf"
    )
    added = Masked(name="masked")(
        layers.Embedding(7, 4, mask_zero=True)(tokens)
    )  # Keras 2 gives it the mask
    keras2.Model(tokens, layers.Dense(1)(added)).save(tmp_path / "zoo/added", save_format="tf")
    result, records = migrated(tmp_path / "zoo", tmp_path)
    told = {name: (record["status"], record["reason"]) for name, record in records.items()}
    assert told["several"] == told["masked"] == ("rebuilt", ""), (result.output, told)
    assert told["added"][0] in ("rebuilt", "partial", "wrapped")
    kept = keras.models.load_model(tmp_path / "out/models/several/model.keras")  # in safe mode
    assert "SavedModelLayer" not in {type(layer).__name__ for layer in kept.layers}


def test_a_class_that_only_keras_3_has_is_one_of_the_users_own(keras2, tmp_path):
    """`MixUp` outside of training returns what it is given in Keras 3; this one doubles it."""
    layers = keras2.layers

    class MixUp(layers.Layer):
        def call(self, x):
            return x * 2.0

    class RandomGrayscale(layers.Layer):
        def build(self, shape):
            self.weights_of_colours = self.add_weight(name="colours", shape=shape[-1:])

        def call(self, x):
            return x * self.weights_of_colours

    keras2.Sequential([layers.Dense(3, input_shape=(4,)), MixUp(name="mixed")]).save(
        tmp_path / "zoo/without"
    )
    keras2.Sequential([layers.Dense(3, input_shape=(4,)), RandomGrayscale(name="grey")]).save(
        tmp_path / "zoo/weights"
    )
    result, records = migrated(tmp_path / "zoo", tmp_path)
    without, weights = records["without"], records["weights"]
    assert without["status"] == "rebuilt", (result.output, without["reason"])
    assert list(without["parts"][0]["layers"]) == ["MixUp 'mixed'"]
    assert weights["status"] == "partial"
    assert "RandomGrayscale 'grey'" in weights["reason"] and "Keras 3 has" not in weights["reason"]


def test_a_layer_of_a_later_keras_than_the_one_that_saved_the_model_is_the_users_own(
    keras2, tmp_path
):
    class UnitNormalization(keras2.layers.Layer):
        def call(self, x):
            return x * 2.0

    entry = keras2.Input((4,))
    keras2.Model(entry, UnitNormalization(name="unit")(keras2.layers.Dense(3)(entry))).save(
        tmp_path / "zoo/old"
    )
    path = tmp_path / "zoo/old/saved_model.pb"
    message = schema.parse(schema.SavedModel, path.read_bytes())
    message.meta_graphs[0].meta_info_def.tensorflow_version = "2.8.4"
    path.write_bytes(message.SerializeToString())
    _, records = migrated(tmp_path / "zoo", tmp_path, "--no-wrap")
    assert records["old"]["status"] == "rebuilt", records["old"]["reason"]
    assert records["old"]["parts"][0]["layers"] == {
        "UnitNormalization 'unit'": ["the ops of its graph to keras.ops"]
    }


def test_a_rebuilt_model_that_differs_names_the_layers_and_what_differs(keras2, tmp_path):
    layers = keras2.layers

    class Dense(layers.Dense):
        """Its name and its configuration are those of Keras."""

        def call(self, x):
            return super().call(x) * 2.0

    class Frozen(layers.Dense):
        """Its kernel is a constant of its graph."""

        def call(self, x):
            return tf.matmul(x, tf.constant(np.full((3, 2), 0.5, "float32"))) + self.bias

    def model(*more):
        return keras2.Sequential([layers.Dense(3, input_shape=(4,), name="first"), *more])

    model(Dense(2, name="own"), layers.ReLU()).save(tmp_path / "zoo/own", save_format="tf")
    Frozen.__name__ = "Dense"
    model(Frozen(2, name="frozen")).save(tmp_path / "zoo/frozen", save_format="tf")
    changed = layers.Dense(1, name="changed", input_shape=(4,))
    found = keras2.Sequential([changed])
    # Inputs of these rows alone cannot tell it from one with a ReLU.
    rows = np.concatenate([np.random.default_rng(seed).standard_normal((2, 4)) for seed in (0, 1)])
    changed.kernel.assign(np.linalg.solve(rows, np.ones((4, 1))))
    changed.get_config = lambda: {**layers.Dense.get_config(changed), "activation": "relu"}
    found.save(tmp_path / "zoo/activation", save_format="tf")
    result, records = migrated(tmp_path / "zoo", tmp_path)
    wanted = {
        "own": (
            "layer Dense 'own' (layer_with_weights-1): its graph computes something else than the"
            " layer of Keras"
        ),
        "frozen": (
            "Dense 'frozen' (layer_with_weights-1): its graph has a constant in place of its"
            " variable 'frozen/kernel'"
        ),
        "activation": (
            "layer Dense 'changed' (layer_with_weights-0): its configuration has the activation"
            " 'relu', and its graph"
        ),
    }
    statuses = {"own": "rebuilt", "frozen": "partial", "activation": "rebuilt"}
    for name, reason in wanted.items():
        record = records[name]
        assert record["status"] == statuses[name], (name, record["reason"], result.output)
        assert any(reason in note for note in record["parts"][0]["notes"])
        assert {item["state"] for item in record["parts"][0]["verdicts"]} <= {"equal", "close"}
    assert wanted["frozen"] in records["frozen"]["reason"]
    _, records = migrated(tmp_path / "zoo", tmp_path / "second", "--no-wrap")
    assert {name: record["status"] for name, record in records.items()} == {
        **statuses,
        "frozen": "differs",
    }
    assert wanted["frozen"] in records["frozen"]["reason"]


def test_a_layer_shared_by_calls_that_compute_differently_stays_wrapped(keras2, tmp_path):
    class Scale(keras2.layers.Layer):
        def call(self, x, by=1.0):
            return x * by

    entry, scale = keras2.Input((4,)), Scale(name="scale")
    keras2.Model(entry, keras2.layers.Dense(2)(scale(entry, by=2.0) + scale(entry, by=3.0))).save(
        tmp_path / "zoo/shared", save_format="tf"
    )
    _, records = migrated(tmp_path / "zoo", tmp_path)
    assert records["shared"]["status"] in ("partial", "wrapped")


def test_a_layer_with_weights_is_cut_out_for_its_own_reason(keras2, tmp_path):
    class Scaled(keras2.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=shape[-1:])

        def call(self, x):
            return x * self.scale

    keras2.Sequential([Scaled(input_shape=(4,), name="scaled"), keras2.layers.Dense(2)]).save(
        tmp_path / "zoo/own", save_format="tf"
    )
    _, records = migrated(tmp_path / "zoo", tmp_path)
    assert records["own"]["status"] == "partial"
    assert "Scaled 'scaled' (layer_with_weights-0): " in records["own"]["reason"]


def test_graphs_that_attack(keras2, tmp_path):
    """Functions that call themselves or double their work, and broken edges, are refused."""
    entry = keras2.Input((4,))
    keras2.Model(entry, keras2.layers.Lambda(LAMBDAS["of a function"], name="one")(entry)).save(
        tmp_path / "model"
    )
    path = tmp_path / "model/saved_model.pb"
    sound = path.read_bytes()

    def attacked(change=lambda body: None, captured=None):
        message = schema.parse(schema.SavedModel, sound)
        functions = {
            item.signature.name: item for item in message.meta_graphs[0].graph_def.library.function
        }
        for name, body in functions.items():
            if "one_layer_call" in name:
                change(body)
        for name, trace in message.meta_graphs[0].object_graph_def.concrete_functions.items():
            if "one_layer_call" in name and captured is not None:
                trace.bound_inputs.append(captured)
        path.write_bytes(message.SerializeToString())
        with pytest.raises(Refused) as refused:
            layer_model(graph_of(tmp_path / "model", "one"), "new")
        return str(refused.value)

    def itself(body):
        for node in body.node_def:
            if "PartitionedCall" in node.op:
                node.attr["f"].func.name = body.signature.name

    def circle(body):
        for node in body.node_def:
            if len(node.input) and node.op != "Const":
                node.input[0] = f"{node.name}:output:0"

    def nowhere(body):
        for name in body.ret:
            body.ret[name] = "nothing:output:0"

    def late(body):
        for name in body.ret:
            body.ret[name] = body.ret[name].rpartition(":")[0] + ":7"

    assert "more than" in attacked(itself)
    assert "damaged" in attacked(circle) and "damaged" in attacked(nowhere)
    assert attacked(late)
    assert "damaged" in attacked(captured=10**6) and "damaged" in attacked(captured=-1)
