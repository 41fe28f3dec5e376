"""A SavedModel that somebody gives: what is made of it before any server or TensorFlow is asked."""

import shutil
from pathlib import Path

import pytest

from compat_matrix.requests import given
from compat_matrix.requests.policies import RELEASES
from compat_matrix.serving.staging import Unstageable

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def test_a_link_out_of_the_model_is_refused(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(FIXTURES / "half_plus_two" / "model", model)
    (tmp_path / "secret").write_text("x")
    (model / "assets.extra").mkdir()
    (model / "assets.extra" / "taken_along").symlink_to(tmp_path / "secret")
    with pytest.raises(Unstageable, match="symbolic link out of the model"):
        given.as_artifact(model, tmp_path / "given", RELEASES)
