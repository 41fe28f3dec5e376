"""The models of `savedmodel_migration.keras_models`: what the table says, and that a release makes them."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import savedmodel_migration.keras_models
from docs import keras_table
from savedmodel_migration.keras_models import (
    groups,
    layers,
    material,
    outcome,
    recorder,
    table,
)

STATES = ("close", "step", "answers", "refused", "error", "jax", "torch", "file")

# The layers of the issue: what a table without them would not show.
CORE = [
    "Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose",
    "SeparableConv1D", "SeparableConv2D", "DepthwiseConv1D", "DepthwiseConv2D", "MaxPooling1D",
    "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D",
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "GlobalAveragePooling1D",
    "GlobalAveragePooling2D", "GlobalAveragePooling3D", "BatchNormalization", "LayerNormalization",
    "Embedding", "LSTM", "GRU", "SimpleRNN", "Bidirectional", "TimeDistributed", "Attention",
    "AdditiveAttention", "MultiHeadAttention", "Add", "Subtract", "Multiply", "Average", "Maximum",
    "Minimum", "Concatenate", "Dot", "Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax",
    "Flatten", "Reshape", "Permute", "RepeatVector", "Normalization", "Discretization",
    "CategoryEncoding", "Hashing", "HashedCrossing", "IntegerLookup", "StringLookup",
    "TextVectorization", "Rescaling", "Resizing", "CenterCrop",
]  # fmt: skip


def test_every_core_layer_has_rows():
    assert not set(CORE) - set(layers.LAYERS)
    assert all(len({row[0] for row in rows}) == len(rows) for rows in layers.LAYERS.values()), (
        "a variant is there twice"
    )


def test_folders_are_told_apart():
    names = recorder.names()
    assert len({recorder.folder(name) for name in names}) == len(names) > 300


@pytest.mark.parametrize("file", ["layers.py", "whole.py", "recorder.py"])
def test_what_runs_inside_a_release_is_python_3_6(file):
    text = (Path(savedmodel_migration.keras_models.__file__).parent / file).read_text()
    assert ast.parse(text, feature_version=(3, 6)).body


def test_a_pattern_that_fits_nothing_is_an_error():
    with pytest.raises(LookupError, match="Dens"):
        material.select(["Dens"])
    assert material.select(["LSTM"]) and all(
        name.startswith("LSTM/") for name in material.select(["LSTM"])
    )


@pytest.mark.tensorflow
def test_a_small_set_is_made_with_what_it_answers(tmp_path, monkeypatch):
    pytest.importorskip("tf_keras")
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", os.fspath(tmp_path))
    names = ["Dense/plain", "LSTM/plain", "Identity/plain"]
    assert dict(material.make("tf_keras", names)) == dict.fromkeys(names, "made")
    assert list(material.make("tf_keras", names)) == [], "they are there"
    dense = material.stored("tf_keras", "Dense/plain")
    kernel, bias = dense.arrays("weights.npz", "w")
    (given,), (answer,) = dense.arrays("io.npz", "x"), dense.arrays("io.npz", "y")
    np.testing.assert_allclose(given @ kernel + bias, answer, rtol=1e-5)
    assert dense.facts["compiled"] and len(dense.arrays("step.npz", "w")) == 2
    assert (dense.model / "keras_metadata.pb").is_file()
    facts = dense.folder / "facts.json"
    facts.write_text(facts.read_text().replace(material.key("Dense/plain"), "another"))
    assert material.stored("tf_keras", "Dense/plain") is None, "made by another description"


def test_the_page_has_every_core_layer_and_a_reason_for_each_answer_that_differs():
    facts = json.loads(keras_table.RECORD.read_text())
    page = keras_table.page(lambda header, rows: "".join(" | ".join(row) + "\n" for row in rows))
    assert all(f"`{layer}` | " in page for layer in CORE)
    assert {
        name
        for _, rows in groups.by_group(facts["models"])
        for layer in rows.values()
        for name in layer_names(facts, layer)
    } == {*facts["models"]}
    differing = [
        (name, state)
        for _, name, state, _ in facts["why"]
        if state in ("answers", "weights", "error")
    ]
    assert all(keras_table.reason(name, state) for name, state in differing), differing


def layer_names(facts, rows):
    return [name for name, row in facts["models"].items() if any(row is one for one in rows)]


def test_every_reason_is_about_a_model():
    patterns = {pattern for entry in keras_table.reasons() for pattern in entry["models"]}
    assert (
        patterns and {one for one in patterns if not fnmatch.filter(recorder.names(), one)} == set()
    )
    assert {state for entry in keras_table.reasons() for state in entry["states"]} <= {*STATES}


def test_tensorflow_is_hidden_and_nothing_else_is():
    program = (
        "import sys, importlib.util; from savedmodel_migration.keras_models.table import"
        " WithoutTensorFlow\nsys.meta_path[:] = map(WithoutTensorFlow, sys.meta_path)\nassert"
        " importlib.util.find_spec('tensorflow') is None and importlib.util.find_spec('numpy')\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        cwd=Path(savedmodel_migration.keras_models.__file__).parents[2],
    )


def test_every_core_layer_of_every_release_predicts_as_before_or_has_a_reason():
    facts = json.loads(keras_table.RECORD.read_text())
    core = {name for name in facts["models"] if name.partition("/")[0] in CORE}
    unlike = [
        (name, state)
        for _, name, state, _ in facts["why"]
        if name in core and state not in ("file", "step")
    ]
    assert len(core) > 200
    assert [entry for entry in unlike if not keras_table.reason(*entry)] == []


@pytest.mark.parametrize(
    ("why", "code"),
    [
        (["", table.NEEDS_TENSORFLOW], 0),
        (["", "ValueError: no such layer"], 1),
        ([table.NEEDS_TENSORFLOW], 3),
        ([], 3),
    ],
)
def test_a_layer_that_keras_computes_with_tensorflow_fails_no_other_backend(
    monkeypatch, tmp_path, why, code
):
    found = [
        (str(number), {"state": "error" if text else "equal", "why": text})
        for number, text in enumerate(why)
    ]
    monkeypatch.setattr(table, "outcomes", lambda *given: iter(found))
    monkeypatch.setattr(
        os, "environ", dict(os.environ)
    )  # the command chooses the backend of its process
    done = CliRunner().invoke(table.main, ["--out", str(tmp_path), "--release", "2.15"])
    assert done.exit_code == code, done.output


@pytest.mark.tensorflow
def test_close_answers_are_told_by_what_gives_them_the_bits_of_the_original(tmp_path, monkeypatch):
    pytest.importorskip("tf_keras")
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", os.fspath(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    names = [
        "BatchNormalization/image",
        "LayerNormalization/plain",
        "SimpleRNN/state",
        "MultiHeadAttention/plain",
    ]
    assert dict(material.make("tf_keras", names)) == dict.fromkeys(names, "made")
    found = {name: outcome.examine(material.stored("tf_keras", name)) for name in names}
    assert [one["state"] for one in found.values()] == ["close"] * 4, found
    assert [one["bits"] for one in found.values()] == ["kernel", "kernel", "optimizer", ""], found


def test_the_applications_of_the_issue_have_the_bits_of_the_original_with_its_normalization():
    models = json.loads(keras_table.RECORD.read_text())["models"]
    explained = {
        letter for key, letter in keras_table.BITS.items() if "Keras 2" in outcome.SAME_BITS[key]
    }
    told = {
        name: {*models[name]["bits"]}
        for name in ("ResNet50", "MobileNetV2", "EfficientNetB0", "DenseNet121")
    }
    assert all(
        marks & explained and marks <= {*explained, keras_table.NOT_ASKED}
        for marks in told.values()
    ), told
