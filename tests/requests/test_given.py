"""A SavedModel that somebody gives: what is made of it before any server or TensorFlow is asked."""

import shutil
from pathlib import Path

import model_edits as edits
import pytest

from compat_matrix.requests import given, questions
from compat_matrix.requests.artifact import read_artifact
from compat_matrix.requests.policies import RELEASES
from reference_impl.format.container import layout
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
