"""`reference_impl.load` of models of TensorFlow 2: tables, assets, signatures."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from made_models import save

import reference_impl
from reference_impl import errors as format_errors

pytestmark = pytest.mark.tensorflow


def test_PRIM_08_and_RES_10_tables_work_after_the_move(tf, loaded):
    assert loaded.look(tf.constant(["bee", "wasp", "ant"])).numpy().tolist() == [1, -1, 0]
    assert loaded.look(["ant"]).numpy().tolist() == [0]


def test_RES_15_and_RP_06_content_of_mutable_tables_and_independence_of_loads(tf, original):
    first, second = reference_impl.load(original[1]), reference_impl.load(original[1])
    assert first.count(["bee"]).numpy().tolist() == [2]
    assert first.count(["bee"]).numpy().tolist() == [3]
    assert second.count(["bee"]).numpy().tolist() == [2]
    first.bias.assign([9.0, 9.0])
    assert second.bias.numpy().tolist() == [0.5, 0.25]


def test_RES_09_asset_paths_are_absolute(tf, original, monkeypatch):
    monkeypatch.chdir(original[1].parent)
    loaded = reference_impl.load(original[1].name)
    monkeypatch.chdir("/")
    path = Path(loaded.words._initializer._filename.asset_path.numpy().decode())
    assert path.is_absolute() and path.read_text() == "ant\nbee\n"


def test_RES_06_a_missing_asset_is_named(tf, original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    (copy / "assets" / "words.txt").unlink()
    with pytest.raises(format_errors.MissingFileError, match=r"words\.txt.*missing"):
        reference_impl.load(copy)


def test_ATTR_01_and_02_signatures(tf, loaded):
    assert sorted(loaded.signatures) == ["look", "serve"]
    result = loaded.signatures["serve"](x=tf.constant([[1.0, 2.0]]), scale=tf.constant(2.0))
    assert list(result) == ["also", "plain", "scaled"]
    np.testing.assert_array_equal(result["scaled"].numpy(), 2 * result["plain"].numpy())
    assert loaded.signatures["look"](tf.constant(["bee"]))["output_0"].numpy().tolist() == [1]
    with pytest.raises(TypeError, match="positional"):
        loaded.signatures["serve"](tf.zeros([1, 2]), tf.constant(1.0))
    with pytest.raises(TypeError, match="scale"):
        loaded.signatures["serve"](x=tf.zeros([1, 2]))
    with pytest.raises(TypeError):
        loaded.signatures["new"] = None


def test_SIG_11_composite_outputs(tf, tmp_path):
    root = tf.Module()

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def f(x):
        return {"ragged": x * 2, "sparse": x.to_sparse()}

    root.f = f
    loaded = reference_impl.load(save(tf, tmp_path, root, signatures={}))
    result = loaded.f(tf.ragged.constant([[1, 2], [3]]))
    assert result["ragged"].to_list() == [[2, 4], [6]]
    assert isinstance(result["sparse"], tf.SparseTensor) and result[
        "sparse"
    ].values.numpy().tolist() == [1, 2, 3]


def test_load_while_a_function_is_traced(tf, original):
    loaded = {}

    @tf.function
    def outer():
        loaded["root"] = reference_impl.load(original[1])
        return loaded["root"].bias + 1.0

    assert outer().numpy().tolist() == [1.5, 1.25]
    assert loaded["root"].bias.numpy().tolist() == [0.5, 0.25]


def test_GOAL_06_the_loaded_object_can_be_saved_by_tensorflow(tf, loaded, tmp_path):
    loaded.bias.assign([2.0, 3.0])
    directory = save(tf, tmp_path, loaded, signatures=dict(loaded.signatures))
    again = tf.saved_model.load(str(directory))
    x = tf.constant([[1.0, 2.0]])
    np.testing.assert_array_equal(again(x).numpy(), loaded(x).numpy())
    np.testing.assert_array_equal(again(x, training=True).numpy(), loaded(x, training=True).numpy())
    assert again.look(tf.constant(["bee"])).numpy().tolist() == [1]
    assert again.count(tf.constant(["bee"])).numpy().tolist() == [2]
    assert sorted(again.signatures) == ["look", "serve"]
