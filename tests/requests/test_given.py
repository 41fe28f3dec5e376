"""A SavedModel that somebody gives: what is made of it before any server or TensorFlow is asked."""

import shutil
import sys
from pathlib import Path

import pytest

from compat_matrix.requests import given
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.serving.staging import Unstageable

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def test_no_two_requests_share_a_file_when_one_of_an_earlier_metagraph_goes(tmp_path, monkeypatch):
    numbers, kept = [], []

    def first(self, index, key, inputs):
        numbers.append(index)
        return {"number": index, "tags": self.tags}

    def same_again(self, request):
        kept.append(request["number"])
        return request["number"] != 0

    monkeypatch.setattr(given._Recorder, "first", first)
    monkeypatch.setattr(given._Recorder, "same_again", same_again)
    monkeypatch.setattr(given, "local_runtime", lambda: Runtime("local", Path(sys.executable), "2.21.0"))
    several = given.layout.read(FIXTURES / "serve_tpu_gpu" / "model")
    made = given._recorded(several, given.Given(tmp_path / "artifact"), tmp_path)
    assert len(set(numbers)) == len(numbers) > len(made) > 1
    assert [request["number"] for request in made] == numbers[1:]


def test_a_link_out_of_the_model_is_refused(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(FIXTURES / "half_plus_two" / "model", model)
    (tmp_path / "secret").write_text("x")
    (model / "assets.extra").mkdir()
    (model / "assets.extra" / "taken_along").symlink_to(tmp_path / "secret")
    with pytest.raises(Unstageable, match="symbolic link out of the model"):
        given.as_artifact(model, tmp_path / "given")
