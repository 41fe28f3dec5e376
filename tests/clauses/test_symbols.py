"""Clauses API-*: what `save` and `load` take."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import clause_errors
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def model(tf):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.f = tf.function(lambda x: x + root.v, input_signature=[tf.TensorSpec([], tf.float32)])
    return root


def test_API_01_two_symbols(tf, model, tmp_path):
    assert list(inspect.signature(reference_impl.save).parameters) == [
        "obj",
        "export_dir",
        "signatures",
        "options",
    ]
    assert list(inspect.signature(reference_impl.load).parameters) == [
        "export_dir",
        "tags",
        "options",
        "trace",
    ]
    reference_impl.save(model, str(tmp_path / "text"))
    reference_impl.save(
        obj=model,
        export_dir=tmp_path / "path",
        signatures=None,
        options=tf.saved_model.SaveOptions(),
    )
    for name in ("text", "path"):
        for tags in (None, "serve", ["serve"], {"serve"}):
            loaded = reference_impl.load(
                Path(tmp_path / name), tags, options=tf.saved_model.LoadOptions()
            )
            assert loaded.f(1.0).numpy() == 2.0


@pytest.mark.parametrize(
    "kind", ["dict", "list", "class", "number", "None", "tf.function", "loaded function"]
)
def test_API_02_what_is_no_trackable_is_refused_in_one_way(tf, model, tmp_path, kind):
    def of_loaded():
        reference_impl.save(model, tmp_path / "loaded")
        return reference_impl.load(tmp_path / "loaded").f

    roots = {"dict": dict, "list": list, "class": lambda: tf.Module, "number": lambda: 3, "None": lambda: None,
             "tf.function": lambda: model.f, "loaded function": of_loaded}  # fmt: skip
    with clause_errors.raises(
        errors.NotTrackableError, "API-02", match=r"trackable.*(tf\.Module|tf\.train\.Checkpoint)"
    ):
        reference_impl.save(roots[kind](), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_API_03_signatures_are_a_function_or_a_map(model, both, tmp_path):
    reference_impl.save(model, tmp_path / "function", model.f)
    reference_impl.save(
        model, tmp_path / "map", {"a": model.f, "b": model.f.get_concrete_function()}
    )
    for name, keys in (("function", ["serving_default"]), ("map", ["a", "b"])):
        for loaded in both(tmp_path / name):
            assert sorted(loaded.signatures) == keys
    for refused in (
        [model.f],
        {1: model.f},
        {"__saved_model_init_op": model.f},
        {"__saved_model_train_op": model.f},
        {"a": abs},
        3,
    ):
        with clause_errors.raises(errors.SignatureError, "API-03"):
            reference_impl.save(model, tmp_path / "m", refused)
    assert not (tmp_path / "m").exists()


def test_API_04_saving_again_replaces_all_of_the_old_export(tf, model, both, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("ant\n")
    model.asset = tf.saved_model.Asset(str(words))
    reference_impl.save(model, tmp_path / "m")
    del model.asset
    model.v.assign(10.0)
    reference_impl.save(model, tmp_path / "m")
    assert not [
        name for _, _, names in os.walk(tmp_path / "m") for name in names if name == "words.txt"
    ]
    for loaded in both(tmp_path / "m"):
        assert loaded.f(1.0).numpy() == 11.0


def test_API_05_no_signatures_are_needed(tf, both, tmp_path):
    reference_impl.save(tf.Module(), tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert len(loaded.signatures) == 0
