"""A SavedModel that somebody gives: what is made of it before any server or TensorFlow is asked."""

import json
import shutil
from pathlib import Path

import model_edits as edits
import numpy as np
import pytest

from compat_matrix.requests import given, questions
from compat_matrix.requests.artifact import ArtifactError, read_artifact
from compat_matrix.requests.policies import RELEASES
from reference_impl.format.container import layout
from savedmodel_common import tensors
from savedmodel_common.staging import Unstageable
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.contract.form import contract_of

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def test_a_link_out_of_the_model_is_refused(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(FIXTURES / "half_plus_two" / "model", model)
    (tmp_path / "secret").write_text("x")
    (model / "assets.extra").mkdir()
    (model / "assets.extra" / "taken_along").symlink_to(tmp_path / "secret")
    with pytest.raises(Unstageable, match="symbolic link"):
        given.as_artifact(model, tmp_path / "given", RELEASES)


def test_tags_are_a_set_whatever_their_order():
    """The exporter of this artifact wrote its requests with the tags in another order than they are
    sorted in.
    """
    artifact = read_artifact(FIXTURES / "serve_gpu_only")
    found = layout.read(artifact.model)
    asked = questions.from_artifact(artifact, found).questions
    assert len(asked) == 1
    assert questions.unasked(found, asked) == []
    assert questions.invent(found, asked, 1) == []


def test_a_repeated_tag_counts_once(tmp_path):
    def repeat(message):
        message.meta_graphs[0].meta_info_def.tags.append("serve")

    once = edits.fixture("half_plus_two")
    twice = edits.edited(once, tmp_path / "twice", repeat)
    assert questions.chosen_tags(layout.read(twice), "serve") == ("serve",)
    assert contract_of(twice) == contract_of(once)
    assert canonical(twice).hash == canonical(once).hash


def asked_with(directory, **tensors):
    """The questions about half_plus_two, with one request that ``numpy.savez`` wrote."""
    io = directory / "mine"
    io.mkdir()
    np.savez(io / "first.npz", **tensors)
    entry = {"id": "first", "kind": "signature", "tags": ["serve"], "signature": "serving_default"}
    request = {**entry, "inputs": "first.npz", "outputs": None}
    (io / "io.json").write_text(json.dumps({"schema": 1, "requests": [request]}))
    export = given.Export(FIXTURES / "half_plus_two" / "model")
    (directory / "model").mkdir()
    return given.questions_of(export, io, layout.read(export.path), directory)[0]


def test_a_request_may_be_a_file_of_numpy_savez(tmp_path):
    asked = asked_with(tmp_path, x=np.float32([[1], [2]]))
    assert (len(asked.questions), asked.problems) == (1, [])
    assert tensors.load(tmp_path / "io" / "first.npz")["x"].dtype == "float32"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.float64([[1]]), "float64"),
        (np.array(["a", None], object), "bytes"),
        (np.zeros(2, "V2"), "void16"),
    ],
)
def test_a_file_of_numpy_savez_that_is_no_request_is_refused(tmp_path, value, reason):
    try:
        said = str(asked_with(tmp_path, x=value).problems)
    except ArtifactError as error:
        said = str(error)
    assert reason in said


def test_strings_of_numpy_savez_are_tensors_of_bytes(tmp_path):
    np.savez(tmp_path / "words.npz", words=np.array([b"a", b"bc"]))
    assert tensors.is_plain(tmp_path / "words.npz")
    (words,) = tensors.load(tmp_path / "words.npz", plain=True).values()
    assert (words.dtype, words.array.tolist()) == ("string", [b"a", b"bc"])
    with pytest.raises(ValueError, match="meta"):
        tensors.load(tmp_path / "words.npz")
