"""The models of `keras_models`: what the table says, and that a release makes them."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numpy as np
import pytest

import keras_models
from keras_models import layers, material, recorder

# The layers of the issue: what a table without them would not show.
CORE = [
    "Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose",
    "Conv2DTranspose", "Conv3DTranspose", "SeparableConv1D", "SeparableConv2D", "DepthwiseConv1D",
    "DepthwiseConv2D", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D",
    "AveragePooling2D", "AveragePooling3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D",
    "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D", "BatchNormalization", "LayerNormalization",
    "Embedding", "LSTM", "GRU", "SimpleRNN", "Bidirectional",
    "TimeDistributed", "Attention", "AdditiveAttention", "MultiHeadAttention", "Add",
    "Subtract", "Multiply", "Average", "Maximum", "Minimum",
    "Concatenate", "Dot", "Activation", "ReLU", "LeakyReLU",
    "PReLU", "ELU", "Softmax", "Flatten", "Reshape",
    "Permute", "RepeatVector", "Normalization", "Discretization", "CategoryEncoding",
    "Hashing", "HashedCrossing", "IntegerLookup", "StringLookup", "TextVectorization",
    "Rescaling", "Resizing", "CenterCrop",
]  # fmt: skip


def test_every_core_layer_has_rows():
    assert not set(CORE) - set(layers.LAYERS)
    assert all(len({row[0] for row in rows}) == len(rows) for rows in layers.LAYERS.values()), "a variant is there twice"


def test_folders_are_told_apart():
    names = recorder.names()
    assert len({recorder.folder(name) for name in names}) == len(names) > 300


@pytest.mark.parametrize("file", ["layers.py", "whole.py", "recorder.py"])
def test_what_runs_inside_a_release_is_python_3_6(file):
    text = (Path(keras_models.__file__).parent / file).read_text()
    assert ast.parse(text, feature_version=(3, 6)).body


def test_a_pattern_that_fits_nothing_is_an_error():
    with pytest.raises(LookupError, match="Dens"):
        material.select(["Dens"])
    assert material.select(["LSTM"]) and all(name.startswith("LSTM/") for name in material.select(["LSTM"]))


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
