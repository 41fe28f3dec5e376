"""No command changes the models that it is asked about, whatever loader runs them."""

import hashlib
import shutil

import model_edits as edits
import pytest

from compat_matrix.hosts import private_copies
from compat_matrix.hosts.host import stamp
from compat_matrix.hosts.private_copies import PrivateCopies
from property_tests.attacks import effects, imports, paths_of_ops
from savedmodel_common.writing_models import may_write

WRITING = [
    paths_of_ops.write_given_checkpoint,
    paths_of_ops.write_in_second_round,
    paths_of_ops.move_another_checkpoint,
    paths_of_ops.write_own_asset,
]


def content(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("attack", [*WRITING, effects.write_when_called, imports.write_at_import])
def test_models_that_may_write_are_copied_once(tmp_path, attack):
    attack(tmp_path / "model")
    copies = PrivateCopies(tmp_path / "copies")
    opened = copies.of(tmp_path / "model", stamp(tmp_path / "model"))
    assert opened != tmp_path / "model"
    assert list(content(opened).values()) == list(content(tmp_path / "model").values())
    assert copies.of(tmp_path / "model", stamp(tmp_path / "model")) == opened


def test_others_are_opened_where_they_are(tmp_path):
    for path in sorted(edits.FIXTURES.glob("*/model")):
        assert not may_write(path), path
    model = edits.fixture("half_plus_two")
    assert PrivateCopies(tmp_path).of(model, stamp(model)) == model


def test_copies_of_a_model_are_searched_once(tmp_path, monkeypatch):
    searched = []
    monkeypatch.setattr(private_copies, "writes", lambda path: searched.append(path) or answer)
    models = [edits.fixture("half_plus_two"), tmp_path / "moved" / "model"]
    shutil.copytree(*models)
    for answer, times in ((False, 1), (True, 1), (None, 2)):  # None: it could not be read
        searched.clear()
        copies = PrivateCopies(tmp_path / str(answer))
        opened = [copies.of(model, stamp(model)) for model in models]
        assert (opened == models) is not bool(answer)
        assert len(searched) == times


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", ["v1_session_worker", "c_api_worker", "tf2_worker"])
@pytest.mark.parametrize("attack", WRITING)
def test_no_loader_changes_its_source(warm_host, tmp_path, attack, program):
    attack(tmp_path / "model")
    before = content(tmp_path / "model")
    worker = warm_host.worker("local", program)
    with warm_host.model(worker, tmp_path / "model", ["serve"], 60, shared=False):
        pass
    assert content(tmp_path / "model") == before
