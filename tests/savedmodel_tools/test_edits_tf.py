"""Edited exports of today's TensorFlow, in every consumer: the answers are those of the model
before, under the new names.
"""

import json

import numpy as np
import pytest

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.checks import run_cell
from compat_matrix.requests.given import as_artifact
from compat_matrix.requests.policies import RELEASES
from compat_matrix.runtimes.runtime import local_runtime
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from savedmodel_common import tensors
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.run import edit
from savedmodel_tools.edits.slim import slim

pytestmark = pytest.mark.tensorflow

X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]], np.float32)


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def model(tf, tmp_path_factory):
    """Two signatures, a table, an optimizer with slots, a function that trains, a custom
    gradient.
    """

    class Optimizer(tf.Module):
        """Momentum, with the attributes of every Keras optimizer: Keras itself differs between the
        releases tested.
        """

        def __init__(self, variables):
            super().__init__()
            self._iterations = tf.Variable(0, dtype=tf.int64)
            self._learning_rate = tf.Variable(0.1)
            self._momentums = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
            self._variables = [self._iterations, self._learning_rate, *self._momentums]

        def apply(self, pairs):
            for slot, (gradient, variable) in zip(self._momentums, pairs):
                slot.assign(0.9 * slot + gradient)
                variable.assign_sub(self._learning_rate * slot)
            self._iterations.assign_add(1)

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable([1.0, -2.0, 0.5]), tf.Variable(1.0)
            self.optimizer = Optimizer([self.w, self.b])
            pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1.0, 2.0]))
            self.table = tf.lookup.StaticHashTable(pairs, -1.0)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def call(self, x):
            return {"y": clipped(tf.reduce_sum(x * self.w, 1) + self.b)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def find(self, key):
            return {"id": self.table.lookup(key)}

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(self.call(x)["y"] ** 2)
            variables = [self.w, self.b]
            self.optimizer.apply(zip(tape.gradient(loss, variables), variables))
            return {"loss": loss}

    @tf.custom_gradient
    def clipped(x):
        return tf.minimum(x, 100.0), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    made = Model()
    made.train(tf.constant(X))
    path = tmp_path_factory.mktemp("models") / "model"
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(
        made,
        str(path),
        signatures={"serving_default": made.call, "find": made.find},
        options=options,
    )
    return path


@pytest.fixture(scope="module")
def edited(model, tmp_path_factory):
    """The model, slim, with its signatures called otherwise."""

    def change(draft):
        signatures.make_default(draft, "find", old="predict")
        signatures.copy(draft, "predict", "score")
        slim(draft)

    out = tmp_path_factory.mktemp("edited") / "model"
    done = edit(model, out, change)
    assert done.kept == () and any("optimizer optimizer" in text for text in done.changes), done
    return out


def test_an_optimizer_and_what_it_remembers_are_gone(model, edited):
    sizes = []
    for path in (model, edited):
        with BundleReader(layout.read(path).checkpoint_prefix) as reader:
            sizes.append(len(reader.keys()))
    graph = layout.read(edited).meta_graph()
    assert sizes == [7, 3]  # weights, bias and the object graph stay
    names = [item.signature.name for item in graph.graph_def.library.function]
    assert not [name for name in names if "train" in name]
    assert not any(
        child.local_name in ("train", "optimizer")
        for child in graph.object_graph_def.nodes[0].children
    )


@pytest.mark.parametrize("loader", ["shipped", "reference"])
def test_the_loaders_of_python_agree(tf, model, edited, loader):
    import reference_impl

    load = tf.saved_model.load if loader == "shipped" else reference_impl.load
    before, after = load(str(model)), load(str(edited))
    assert sorted(after.signatures) == ["find", "predict", "score", "serving_default"]
    x = tf.constant(X)
    want = before.signatures["serving_default"](x=x)["y"].numpy()
    for function in (after.signatures["predict"], after.signatures["score"], after.call):
        assert function(x=x)["y"].numpy().tobytes() == want.tobytes()
    assert after.signatures["serving_default"](key=tf.constant(["b", "?"]))[
        "id"
    ].numpy().tolist() == [2.0, -1.0]
    assert not hasattr(after, "train") and not hasattr(after, "optimizer")
    gradients = []
    for root in (before, after):
        with tf.GradientTape() as tape:
            result = tf.reduce_sum(5.0 * root.call(x)["y"])
        gradients.append(tape.gradient(result, [root.w, root.b]))
    for one, other in zip(*gradients):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_it_is_saved_again_by_the_shipped_writer(tf, edited, tmp_path):
    root = tf.saved_model.load(str(edited))
    tf.saved_model.save(root, str(tmp_path / "again"), signatures=dict(root.signatures))
    again = tf.saved_model.load(str(tmp_path / "again"))
    assert sorted(again.signatures) == ["find", "predict", "score", "serving_default"]
    want = root.signatures["predict"](x=tf.constant(X))["y"].numpy()
    assert again.signatures["score"](x=tf.constant(X))["y"].numpy().tobytes() == want.tobytes()


def test_a_checkpoint_reader_finds_the_variables(tf, edited):
    variable = tf.Variable([0.0, 0.0, 0.0])
    root = tf.train.Checkpoint(w=variable)
    root.read(
        str(layout.read(edited).checkpoint_prefix)
    ).assert_existing_objects_matched().expect_partial()
    assert variable.numpy().any()


@pytest.mark.parametrize("consumer", ["v1_session", "c_api", "tf2", "reference"])
def test_each_consumer_of_the_matrix_gives_the_answers_of_before(
    tf, model, edited, tmp_path, consumer, warm_host
):
    before = tf.saved_model.load(str(model))
    answers = {"y": before.signatures["serving_default"](x=tf.constant(X))["y"].numpy()}
    io = tmp_path / "io"
    io.mkdir()
    tensors.save(io / "in.npz", {"x": tensors.from_numpy(X)})
    tensors.save(
        io / "out.npz", {name: tensors.from_numpy(value) for name, value in answers.items()}
    )
    asked = [
        {
            "id": key,
            "kind": "signature",
            "tags": ["serve"],
            "signature": key,
            "inputs": "in.npz",
            "outputs": "out.npz",
        }
        for key in ("predict", "score")
    ]
    # A session optimises across the call: sums of three products are rounded once more or less.
    tolerance = {"rtol": 1e-6, "atol": 0.0, "reason": "fused kernels"}
    (io / "io.json").write_text(
        json.dumps({"schema": 1, "stateful": False, "tolerance": tolerance, "requests": asked})
    )
    artifact = as_artifact(edited, tmp_path / "artifacts", RELEASES, io).directory
    version = str(local_runtime().tensorflow_version)
    places = {"runtime": "local", "producer_runtime": "local", "artifact": str(artifact)}
    for check in ("values", "signatures", "relocate", "checkpoint"):
        names = {
            "case": "edited",
            "producer": "fixture",
            "producer_version": version,
            "consumer_version": version,
        }
        seen = run_cell(
            Cell(**names, consumer=consumer, check=check, **places), warm_host, warm_host.out
        )
        assert seen.outcome in (Outcome.PASS, Outcome.NOT_APPLICABLE), (check, seen.message)


def test_the_fingerprint_is_made_anew(tf, model, edited):
    read = tf.saved_model.experimental.read_fingerprint
    before, after = read(str(model)), read(str(edited))
    for field in ("saved_model_checksum", "graph_def_program_hash", "signature_def_hash", "saved_object_graph_hash",
                  "checkpoint_hash"):  # fmt: skip
        assert getattr(before, field) != getattr(after, field), field
