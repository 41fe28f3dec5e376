"""A checkpoint that fits only a part of the model: of another export, with variables of other
shapes or dtypes.
"""

from __future__ import annotations

import logging
import shutil

import pytest
from model_edits import fixture

import reference_impl

pytestmark = pytest.mark.tensorflow
PARTIAL = reference_impl.LoadOptions(allow_partial_checkpoint=True)


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def _model(tf, weights):
    root = tf.Module()
    root.w, root.b = tf.Variable(weights), tf.Variable(2.0)
    scalar = tf.TensorSpec([], tf.float32, "x")
    root.with_w = tf.function(
        lambda x: tf.reduce_sum(tf.cast(root.w, tf.float32)) * x, input_signature=[scalar]
    )
    root.with_b = tf.function(lambda x: x * root.b, input_signature=[scalar])
    return root


def _with_checkpoint_of(path, other):
    shutil.rmtree(path / "variables")
    shutil.copytree(other / "variables", path / "variables")
    return path


@pytest.mark.clause("RP-03")
@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("weights", [[1.0, 2.0, 3.0], [1, 2]], ids=["shape", "dtype"])
def test_the_rest_of_the_model_is_loaded_where_that_is_asked_for(
    tf, tmp_path, caplog, writer, weights
):
    save = reference_impl.save if writer == "ours" else tf.saved_model.save
    for name, root in (("m", _model(tf, [1.0, 2.0])), ("other", _model(tf, weights))):
        save(root, str(tmp_path / name), signatures={"w": root.with_w, "b": root.with_b})
    path = _with_checkpoint_of(tmp_path / "m", tmp_path / "other")
    with pytest.raises(
        reference_impl.errors.SavedModelError, match=r"root\.w.*allow_partial_checkpoint=True"
    ):
        reference_impl.load(path)
    caplog.set_level(logging.WARNING)
    loaded = reference_impl.load(path, options=PARTIAL)
    (said,) = [
        record.getMessage() for record in caplog.records if record.name.startswith("reference_impl")
    ]
    assert "root.w" in said
    assert not loaded.w.is_initialized() and float(loaded.b) == 2.0
    assert float(loaded.signatures["b"](x=tf.constant(3.0))["output_0"]) == 6.0
    loaded.w.assign([5.0, 6.0])
    reference_impl.save(loaded, tmp_path / "again")
    assert tf.saved_model.load(str(tmp_path / "again")).with_w(1.0).numpy() == 11.0


@pytest.mark.clause("V1-08")
def test_of_a_tf1_model_too(tf, tmp_path, caplog):
    shutil.copytree(fixture("half_plus_two"), tmp_path / "m")
    reader = tf.train.load_checkpoint(str(tmp_path / "m" / "variables" / "variables"))
    (tmp_path / "other" / "variables").mkdir(parents=True)
    values = [reader.get_tensor("a"), reader.get_tensor("b").astype("int64")]
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "other" / "variables" / "variables"),
        tensor_names=["a", "b"],
        shape_and_slices=["", ""],
        tensors=values,
    )
    path = _with_checkpoint_of(tmp_path / "m", tmp_path / "other")
    for load in (reference_impl.load, lambda path: tf.saved_model.load(str(path))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="dtype"):
            load(path)
    caplog.set_level(logging.WARNING)
    root = reference_impl.load(path, options=PARTIAL)
    assert root.uninitialized_variables == ("b:0",) and [
        variable.name for variable in root.variables
    ] == ["a:0"]
    assert any(": b" in record.getMessage() for record in caplog.records)
