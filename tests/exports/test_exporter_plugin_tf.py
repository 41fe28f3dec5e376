"""``savedmodel_compat`` in the suite of somebody who writes exporters: TensorFlow's, ours, one that
writes protos by hand.
"""

import re

import pytest
from test_exporter_plugin import Project

pytestmark = pytest.mark.tensorflow

EXPORTER = '''
"""An exporter that knows nothing but the format: y = op(x, 2)."""
from reference_impl.format import schema

def export(folder, op="Mul"):
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.versions.producer = 1395
    nodes = graph.graph_def.node
    x = nodes.add(name="x", op="Placeholder")
    x.attr["dtype"].type = schema.DT_FLOAT
    x.attr["shape"].shape.dim.add().size = -1
    two = nodes.add(name="two", op="Const")
    two.attr["dtype"].type = schema.DT_FLOAT
    two.attr["value"].tensor.dtype = schema.DT_FLOAT
    two.attr["value"].tensor.tensor_shape.SetInParent()
    two.attr["value"].tensor.float_val.append(2)
    y = nodes.add(name="y", op=op, input=["x", "two"])
    y.attr["T"].type = schema.DT_FLOAT
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for infos, name in ((signature.inputs, "x"), (signature.outputs, "y")):
        infos[name].name = f"{name}:0"
        infos[name].dtype = schema.DT_FLOAT
        infos[name].tensor_shape.dim.add().size = -1
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(schema.serialize(model))
    return folder
'''
TESTS = """
import numpy as np
import pytest
import tensorflow as tf
from exporter import export

X = np.float32([[1, 2], [3, 4]])


@pytest.fixture
def model():
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable([[1.0], [2.0]])

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
        def score(self, x):
            return {"y": tf.nn.sigmoid(x @ self.w)}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
        def abort(self, x):
            with tf.control_dependencies([tf.raw_ops.Abort(error_msg="on purpose", exit_without_error=False)]):
                return {"y": x + 1.0}

    return Model()


def test_tensorflow(savedmodel_compat, model, tmp_path):
    tf.saved_model.save(model, tmp_path / "export", signatures={"score": model.score})
    report = savedmodel_compat.check(tmp_path / "export", {"score": [({"x": X}, {"y": model.score(X)["y"]}), X[:1]]})
    assert {cell.consumer for cell in report.plan} >= {"tf2", "v1_session", "c_api", "reference"}


@pytest.mark.savedmodel_compat(check=["load", "values"])
def test_reference(savedmodel_compat, model, tmp_path):
    import reference_impl

    reference_impl.save(model, tmp_path / "export", signatures={"score": model.score})
    savedmodel_compat.check(tmp_path / "export", {"score": (X, model.score(X)["y"])})


@pytest.mark.savedmodel_compat(consumer=["c_api", "v1_session"])
def test_by_hand(savedmodel_compat, tmp_path):
    savedmodel_compat.check(export(tmp_path / "export"), {"serving_default": ([1, 2], [2, 4])})


@pytest.mark.savedmodel_compat(check=["requests", "values"])
def test_wrong_and_lost(savedmodel_compat, model, tmp_path):
    tf.saved_model.save(model, tmp_path / "export", signatures={"score": model.score})
    before = model.score(X)["y"]
    model.w.assign([[1.0], [2.5]])  # saved too early
    tf.saved_model.save(model, tmp_path / "late", signatures={"score": model.score})
    savedmodel_compat.check(tmp_path / "late", {"score": (X, before), "rank": [X]})


@pytest.mark.savedmodel_compat(consumer=["c_api"])
def test_unknown_op(savedmodel_compat, tmp_path):
    savedmodel_compat.check(export(tmp_path / "export", "Acme>Mix"), {"serving_default": ([1, 2], [2, 4])}, check=["load"])


@pytest.mark.savedmodel_compat(consumer=["c_api"], check=["values"])
def test_crash(savedmodel_compat, model, tmp_path):
    tf.saved_model.save(model, tmp_path / "export", signatures={"abort": model.abort})
    savedmodel_compat.check(tmp_path / "export", {"abort": (np.float32(1), np.float32(2))})


@pytest.mark.savedmodel_compat(consumer=["c_api"])
def test_after_the_crash(savedmodel_compat, tmp_path):
    savedmodel_compat.check(export(tmp_path / "export", "Add"), {"serving_default": ([1, 2], [3, 4])})
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """What pytest prints for such a suite, once for all tests."""
    project = Project(tmp_path_factory.mktemp("exporters"))
    (project.folder / "conftest.py").unlink()
    (project.folder / "exporter.py").write_text(EXPORTER)
    (project.folder / "test_exports.py").write_text(TESTS)
    done = project.run("-rA")
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def section(output, name):
    return re.split(r"\n_{3,} .* _{3,}\n|\n={3,}", output.partition(f"_ {name} _")[2])[0]


def test_exports_of_three_exporters_pass_with_every_consumer(output):
    for name in ("test_tensorflow", "test_reference", "test_by_hand", "test_after_the_crash"):
        assert f"PASSED test_exports.py::{name}" in output
    assert "3 failed, 4 passed" in output


def test_weights_that_were_saved_too_early_and_a_signature_that_was_lost(output):
    said = section(output, "test_wrong_and_lost")
    versions = re.findall(r"(\w+)@2[.\d]+", said.partition("FAIL_VALUE")[2].splitlines()[0])
    assert versions == ["tf2", "v1_session", "c_api", "reference"]
    assert re.search(
        r"signature 'score', output 'y': element \[0, 0\] is 0\.997\d*, recorded 0\.993\d*; 2 of 2"
        r" differ, by",
        said,
    )
    assert re.search(r"or \d+ ulp", said)
    assert "'rank'" in said and "'score'" in said


def test_an_op_that_the_consumer_does_not_know_is_named_with_its_place(output):
    said = section(output, "test_unknown_op")
    assert "LOAD_ERROR  c_api@" in said
    assert "Acme>Mix" in said
    assert "skew: " in said


def test_a_model_that_kills_its_consumer_costs_one_test(output):
    said = section(output, "test_crash")
    assert "CRASH  c_api@" in said
    assert "SIGABRT" in said
