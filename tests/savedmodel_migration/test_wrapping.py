"""``migrate --to keras`` wraps what it cannot rebuild: real models, the command, the file in a
process of its own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
PREDICT = """
import sys
import numpy as np, keras
import savedmodel_compat.keras
model = keras.saving.load_model(sys.argv[1], safe_mode=False)
with np.load(sys.argv[2]) as stored:
    given = dict(stored)
answer = model.predict(given if len(given) > 1 else given["x"], verbose=0)
np.save(sys.argv[3], answer)
"""


def migrate(*arguments):
    return CliRunner().invoke(cli.main, ["migrate", "--to", "keras", *map(str, arguments)])


def record_of(out, name):
    return json.loads((out / f"records/{name}.json").read_text())


def states(record):
    return {item["what"]: item["state"] for item in record["parts"][0]["verdicts"]}


def predicted(out, name, folder, **inputs):
    """What the new model predicts in a fresh process."""
    np.savez(folder / "inputs.npz", **inputs)
    paths = [out / f"models/{name}/model.keras", folder / "inputs.npz", folder / "answer.npy"]
    fresh_tensorflow.printed(PREDICT, *paths)
    return np.load(paths[-1])


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


@pytest.fixture(scope="module")
def scaled(keras2):
    class Scaled(keras2.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(
                name="scale", shape=shape[-1:], initializer="uniform", regularizer="l2"
            )

        def call(self, x, training=None):
            return x * self.scale

    return Scaled


def test_a_custom_layer_is_wrapped_between_rebuilt_ones_and_the_reason_stays(
    keras2, scaled, tmp_path
):
    model = keras2.Sequential(
        [keras2.layers.Dense(2, input_shape=(3,)), keras2.layers.BatchNormalization(), scaled()]
    )
    model.save(tmp_path / "custom", save_format="tf")
    result = migrate(tmp_path / "custom", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "partial 1: custom: layer Scaled" in result.output and "name its class" in result.output
    record = record_of(tmp_path / "out", "custom")
    assert record["status"] == "partial"
    tree = [line.split(": ")[1] for line in record["parts"][0]["tree"]]
    assert tree == ["Dense", "BatchNormalization", "SavedModelLayer"]
    assert "Scaled" in record["reason"] and "--custom-objects" in record["fix"]
    found = states(record)
    assert set(found) == {"predictions", "saved file", "weights", "gradients", "training step"}
    assert set(found.values()) <= {"equal", "close"}
    assert "Scaled" in (tmp_path / "out/report.html").read_text()
    x = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
    np.testing.assert_allclose(
        predicted(tmp_path / "out", "custom", tmp_path, x=x),
        model.predict(x, verbose=0),
        rtol=1e-6,
        atol=1e-6,
    )


def test_inputs_keep_their_names(keras2, scaled, tmp_path):
    first, second = keras2.Input((3,), name="second"), keras2.Input((3,), name="first")
    model = keras2.Model({"b": first, "a": second}, scaled()(first) - second)
    model.save(tmp_path / "named", save_format="tf")
    assert migrate(tmp_path / "named", "--out", tmp_path / "out").exit_code == 0
    inputs = {
        name: np.random.default_rng(seed).standard_normal((4, 3)).astype("float32")
        for seed, name in enumerate("ab")
    }
    got = predicted(tmp_path / "out", "named", tmp_path, **inputs)
    np.testing.assert_allclose(got, model.predict(inputs, verbose=0), rtol=1e-6, atol=1e-6)


def test_a_model_of_tf_1_is_wrapped(tmp_path):
    result = migrate(FIXTURES / "half_plus_two/model", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "model")
    assert record["status"] == "wrapped" and "TF 1.x" in record["reason"]
    x = np.array([[0.0], [4.0]], "float32")
    np.testing.assert_array_equal(predicted(tmp_path / "out", "model", tmp_path, x=x), x / 2 + 2)


def test_of_several_meta_graphs_the_one_that_serves_is_wrapped_and_the_others_are_named(tmp_path):
    result = migrate(FIXTURES / "serve_and_train/model", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    (part,) = record_of(tmp_path / "out", "model")["parts"]
    assert part["tags"] == ["serve"] and any("train" in note for note in part["notes"])


def test_outputs_that_a_model_of_tf_1_leaves_to_chance_are_not_compared_and_named(tmp_path):
    """A metric that one call reads and updates, in no order: each call may answer otherwise, so it
    used to be `differs`.
    """
    model = shutil.copytree(FIXTURES / "estimator_all_modes/model", tmp_path / "metrics")
    saved = schema.parse(schema.SavedModel, (model / "saved_model.pb").read_bytes())
    graphs = [graph for graph in saved.meta_graphs if list(graph.meta_info_def.tags) == ["eval"]]
    (model / "saved_model.pb").write_bytes(
        schema.SavedModel(saved_model_schema_version=1, meta_graphs=graphs).SerializeToString()
    )
    result = migrate(model, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "metrics")
    assert record["status"] == "wrapped" and set(states(record).values()) == {"equal"}
    (note,) = (note for note in record["parts"][0]["notes"] if "to chance" in note)
    assert "'metrics/error/value'" in note and "'mean_absolute_error/count'" in note


def test_what_no_functional_model_can_take_is_refused_with_both_reasons(tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.call = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec(None)])
    tf.saved_model.save(
        module, str(tmp_path / "any_rank"), signatures={"serving_default": module.call}
    )
    result = migrate(tmp_path / "any_rank", "--out", tmp_path / "out")
    assert result.exit_code == 1
    record = record_of(tmp_path / "out", "any_rank")
    assert record["status"] == "refused"
    assert "object of Keras 2" in record["reason"] and "unknown rank" in record["reason"]
    assert "SavedModelLayer" in record["fix"]
    assert not list((tmp_path / "out").rglob("*.keras"))


def test_a_model_with_a_lookup_table_is_wrapped(keras2, tmp_path):
    """Keras 2 lists the table among the variables of its layer."""
    layers = keras2.layers
    words = layers.StringLookup()
    words.adapt(np.array([["red"], ["green"], ["red"]]))
    model = keras2.Sequential(
        [keras2.Input((1,), dtype="string"), words, layers.Embedding(4, 2), layers.Flatten()]
    )
    model.save(tmp_path / "words", save_format="tf")
    (tmp_path / "words/keras_metadata.pb").unlink()
    result = migrate(tmp_path / "words", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert record_of(tmp_path / "out", "words")["status"] == "wrapped"


def test_the_state_of_a_stateful_rnn_is_that_of_the_file_for_each_answer(keras2, tmp_path):
    model = keras2.Sequential([keras2.layers.GRU(3, stateful=True, batch_input_shape=(2, 5, 4))])
    model(np.ones((2, 5, 4)))
    model.save(tmp_path / "stateful", save_format="tf")
    (tmp_path / "stateful/keras_metadata.pb").unlink()
    result = migrate(tmp_path / "stateful", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "stateful")
    assert (
        record["reason"].startswith("keras_metadata.pb is missing")
        and "put keras_metadata.pb back" in record["fix"]
    )
    verdicts = record["parts"][0]["verdicts"]
    assert {item["what"]: item["state"] for item in verdicts} == dict.fromkeys(
        ("predictions", "saved file", "weights", "gradients", "training step"), "equal"
    )


def test_a_model_that_never_had_metadata_is_used_by_its_functions_and_not_told_to_put_it_back(
    keras2, tmp_path
):
    """tf.saved_model.save writes no keras_metadata.pb, so nothing may be there to be put back."""
    tf = pytest.importorskip("tensorflow")
    model = keras2.Sequential([keras2.Input((3,)), keras2.layers.Dense(2)])
    tf.saved_model.save(model, str(tmp_path / "plain"))
    assert not (tmp_path / "plain/keras_metadata.pb").exists()
    result = migrate(tmp_path / "plain", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "plain")
    assert record["status"] == "wrapped" and set(states(record).values()) == {"equal"}
    assert "tf.saved_model.save and model.export do not" in record["reason"]
    assert record["fix"].startswith("if model.save") and "functions and signatures" in record["fix"]


@pytest.mark.parametrize(("seed", "status"), [(3, "partial"), (None, "unproved")])
def test_a_model_that_draws_numbers_is_compared_by_its_first_draw_or_said_to_draw(
    keras2, tmp_path, seed, status
):
    """With a seed each process draws the same.

    It used to be called another model, for it draws anew for each call.
    """

    class Noisy(keras2.layers.Layer):
        def call(self, x):
            return x + tf.random.normal(tf.shape(x), seed=seed)

    tf = pytest.importorskip("tensorflow")
    keras2.Sequential([keras2.Input((2,)), keras2.layers.Dense(2), Noisy()]).save(
        tmp_path / "noisy", save_format="tf"
    )
    out = tmp_path / "out"
    done = migrate(tmp_path / "noisy", "--out", out, "--jobs", "1")
    record = record_of(out, "noisy")
    assert (record["status"], done.exit_code) == ((status, 0) if seed else (status, 1)), done.output
    if not seed:
        assert "random numbers" in record["reason"]


def test_a_wrapped_model_is_compiled_and_goes_on_from_the_state_of_its_optimizer(
    keras2, scaled, tmp_path
):
    import keras

    import savedmodel_compat.keras  # noqa: F401  # registers the layer

    class Net(keras2.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.scaled = keras2.layers.Dense(2), scaled()

        def call(self, x):
            return self.dense(x) + self.scaled(x)[:, :2]

    net = Net()
    net.compile(keras2.optimizers.Adam(0.01), "mse", metrics=["mae"])
    x = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
    net.fit(x, x[:, :2], epochs=3, verbose=0)
    net.save(tmp_path / "net", save_format="tf")
    result = migrate(tmp_path / "net", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "net")
    assert (record["status"], len(record["parts"][0]["notes"])) == ("wrapped", 1)
    new = keras.saving.load_model(tmp_path / "out/models/net/model.keras", safe_mode=False)
    for model in (net, new):
        for _ in range(2):
            model.train_on_batch(x, x[:, :2])
    np.testing.assert_allclose(
        new.predict(x, verbose=0), net.predict(x, verbose=0), rtol=1e-4, atol=1e-5
    )


def test_models_whose_inputs_change_in_a_file_or_with_a_call_are_wrapped(tmp_path):
    """Named tuples become lists in a file; a counter of TF 1.x trains, and each call changes it;
    examples are parsed.
    """
    import collections

    import tensorflow as tf

    step = collections.namedtuple("step", "reward state")
    module = tf.Module()
    specs = step(tf.TensorSpec([None], name="reward"), tf.TensorSpec([None, 2], name="state"))
    module.__call__ = tf.function(
        lambda given: given.reward[:, None] - 2 * given.state, input_signature=[specs]
    )
    tf.saved_model.save(module, str(tmp_path / "models/named"))
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], "x")
        counter = v1.get_variable(
            "counter", [], tf.int32, v1.zeros_initializer(), use_resource=True
        )
        with tf.control_dependencies([counter.assign_add(1)]):
            y = x * 2.0
        examples = v1.placeholder(tf.string, [None], "examples")
        parsed = (
            v1.parse_example(examples, {"feature": v1.FixedLenFeature([2], tf.float32)})["feature"]
            * 3.0
        )
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "models/counting"), {"x": x}, {"y": y})
        v1.saved_model.simple_save(
            session, str(tmp_path / "models/parsing"), {"examples": examples}, {"y": parsed}
        )
    result = migrate(tmp_path / "models", "--out", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == 0, result.output
    for name in ("named", "counting", "parsing"):
        assert record_of(tmp_path / "out", name)["status"] == "wrapped"


def test_a_stateful_rnn_starts_from_zeros_with_a_note_and_answers_as_after_reset_states(
    keras2, tmp_path
):
    layers = keras2.layers
    model = keras2.Sequential(
        [
            layers.LSTM(
                3, stateful=True, return_sequences=True, batch_input_shape=(4, 5, 2), name="first"
            ),
            layers.Bidirectional(layers.GRU(2, stateful=True), name="both"),
            layers.Dense(2),
        ]
    )
    x = np.random.default_rng(0).standard_normal((4, 5, 2)).astype("float32")
    model(x)
    model.save(tmp_path / "stateful", save_format="tf")
    result = migrate(tmp_path / "stateful", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = record_of(tmp_path / "out", "stateful")
    assert (record["status"], record["reason"]) == ("rebuilt", "")
    said = [
        note
        for note in record["parts"][0]["notes"]
        if "the file holds its state after the last call" in note
    ]
    assert [note.partition(":")[0] for note in said] == ["LSTM 'first'", "Bidirectional 'both'"]
    old = keras2.models.load_model(tmp_path / "stateful")
    keras = pytest.importorskip("keras", minversion="3")
    new = keras.models.load_model(tmp_path / "out/models/stateful/model.keras")
    assert not np.allclose(
        old(x).numpy(), np.asarray(new(x)), atol=1e-4
    )  # it goes on from the state in the file
    new = keras.models.load_model(tmp_path / "out/models/stateful/model.keras")
    old.reset_states()
    for _ in range(2):  # the second time from the state after the first
        np.testing.assert_allclose(np.asarray(new(x)), old(x).numpy(), rtol=1e-5, atol=1e-6)


def test_what_keras_3_would_compute_otherwise_is_wrapped_and_the_reason_names_it(keras2, tmp_path):
    layers = keras2.layers
    entry = keras2.Input((4,))
    fixed = layers.BatchNormalization(name="fixed")(layers.Dense(3)(entry), training=False)
    keras2.Model(entry, layers.Dense(2)(layers.Dropout(0.3)(fixed))).save(
        tmp_path / "models/fixed", save_format="tf"
    )
    tokens = keras2.Input((3, 5), dtype="int32")
    embedded = layers.Embedding(7, 4, mask_zero=True)(tokens)
    masked = layers.GRU(2)(layers.TimeDistributed(layers.LSTM(3))(embedded))
    keras2.Model(tokens, masked).save(tmp_path / "models/masked", save_format="tf")
    result = migrate(tmp_path / "models", "--out", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == 0, result.output
    fixed, masked = (record_of(tmp_path / "out", name) for name in ("fixed", "masked"))
    assert fixed["status"] == masked["status"] == "wrapped"
    assert "BatchNormalization 'fixed' " in fixed["reason"]
    assert "the new one" in masked["reason"] and "\n" not in masked["reason"]


def test_models_with_weights_that_a_call_changes_sparse_inputs_and_nameless_activations(
    keras2, tmp_path
):
    layers = keras2.layers

    class Shrinking(layers.Layer):
        """Its call in training changes a weight that trains, as that of a SpectralNormalization
        does.
        """

        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="ones")

        def call(self, x, training=None):
            if training:
                self.scale.assign(self.scale * 0.9)
            return x * self.scale

    shrinking = keras2.Sequential([layers.Dense(3, input_shape=(4,)), Shrinking()])
    entry = keras2.Input((7,), sparse=True)
    sparse = keras2.Model(entry, layers.Dense(2)(entry))
    tf = pytest.importorskip("tensorflow")
    nameless = keras2.Sequential(
        [layers.Dense(2, activation=lambda x: x * tf.sigmoid(1.7 * x), input_shape=(4,))]
    )
    for name, model in (("shrinking", shrinking), ("sparse", sparse), ("nameless", nameless)):
        model.save(tmp_path / "models" / name, save_format="tf")
    result = migrate(tmp_path / "models", "--out", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == 0, result.output
    for name, status in (("shrinking", "partial"), ("sparse", "rebuilt"), ("nameless", "rebuilt")):
        record = record_of(tmp_path / "out", name)
        assert record["status"] == status, record


def test_an_op_that_tensorflow_lacks_is_named(keras2, scaled, tmp_path):
    keras2.Sequential([scaled(input_shape=(3,))]).save(tmp_path / "strange", save_format="tf")
    file = tmp_path / "strange/saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    for function in message.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            node.op = "NobodyKnowsThisOp" if node.op in ("Mul", "Identity") else node.op
    file.write_bytes(message.SerializeToString())
    result = migrate(tmp_path / "strange", "--out", tmp_path / "out")
    assert result.exit_code == 1
    record = record_of(tmp_path / "out", "strange")
    assert (
        record["status"] == "refused"
        and "Op type not registered 'NobodyKnowsThisOp'" in record["reason"]
    )
    assert "Exception encountered" not in record["reason"] and "KerasTensor" not in record["reason"]


def test_a_link_out_of_the_model_is_not_put_into_the_file(keras2, scaled, tmp_path):
    keras2.Sequential([scaled(input_shape=(3,))]).save(tmp_path / "linked", save_format="tf")
    (tmp_path / "secret").write_text("of the machine")
    (tmp_path / "linked/assets/secret").symlink_to(tmp_path / "secret")
    result = migrate(tmp_path / "linked", "--out", tmp_path / "out")
    assert result.exit_code in (1, 2), result.output
    assert not list((tmp_path / "out").rglob("*.keras"))


def test_a_configuration_that_attacks_is_wrapped_without_being_read(keras2, tmp_path):
    model = keras2.Sequential([keras2.layers.Dense(3, input_shape=(4,), name="dense")])
    model.save(tmp_path / "attacked", save_format="tf")
    path = tmp_path / "attacked/keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    root = next(item for item in metadata.nodes if item.node_id == 0)
    root.metadata = root.metadata.replace('"class_name": "Dense"', '"class_name": "os>system"')
    path.write_bytes(metadata.SerializeToString())
    assert migrate(tmp_path / "attacked", "--out", tmp_path / "out").exit_code == 0
    record = record_of(tmp_path / "out", "attacked")
    assert record["status"] == "wrapped" and "system" in record["reason"]
    x = np.ones((2, 4), "float32")
    np.testing.assert_allclose(
        predicted(tmp_path / "out", "attacked", tmp_path, x=x),
        model.predict(x, verbose=0),
        rtol=1e-6,
    )


def noisy(x):
    import tensorflow as tf

    return x + tf.random.normal([3])


def test_a_dry_run_says_what_is_rebuilt_and_what_is_wrapped(keras2, scaled, tmp_path):
    layers = keras2.layers
    keras2.Sequential([layers.Dense(2, input_shape=(3,)), layers.Dense(1)]).save(
        tmp_path / "zoo/plain", save_format="tf"
    )
    random = layers.Lambda(noisy, input_shape=(3,))
    keras2.Sequential([random]).save(tmp_path / "zoo/coded", save_format="tf")
    keras2.Sequential([layers.Lambda(abs, input_shape=(3,))]).save(
        tmp_path / "zoo/of_ops", save_format="tf"
    )
    keras2.Sequential([scaled(input_shape=(3,))]).save(tmp_path / "zoo/custom", save_format="tf")
    models = (
        *(tmp_path / "zoo" / name for name in ("plain", "custom", "coded", "of_ops")),
        FIXTURES / "half_plus_two/model",
    )
    asked = (*models, "--out", tmp_path / "out", "--dry-run")
    result = migrate(*asked)
    assert result.exit_code == 0, result.output
    plain, custom, coded, of_ops, old = (
        next(line for line in result.stdout.splitlines() if f"{model.name}: " in line)
        for model in models
    )
    assert plain.startswith("rebuild: ") and "2 Dense" in plain
    assert custom.startswith("wrap: ") and "Scaled" in custom
    assert coded.startswith("wrap: ") and "--trust-lambda" in coded
    assert of_ops.startswith("rebuild: ") and "1 Lambda" in of_ops
    assert old.startswith("wrap: ") and "TF 1.x" in old
    assert not (tmp_path / "out").exists()
    refused = migrate(*asked, "--no-wrap")
    assert refused.exit_code == 1 and refused.stdout.count("refuse: ") == 3
