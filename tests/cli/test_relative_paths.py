"""What a command says of a model that was named by a relative path names no absolute one: in text,
in JSON, in errors.
"""

import json
import shutil

import model_edits
import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

COMMANDS = {
    "inspect": "inspect {}",
    "verify": "verify {}",
    "compat": "compat {}",
    "edit signatures": "edit signatures {} --drop regress_x_to_y --out out",
    "slim": "edit slim {} --out out",
    "diff": "diff {} sound",
    "downgrade": "downgrade {} --out out --target 1.15 --no-proof",
    "contract check": "contract check {}",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A sound model, one that lacks its weights, and a tree of the two."""
    sound = model_edits.fixture("half_plus_two")
    for path in ("sound", "tree/sound", "damaged", "tree/damaged"):
        shutil.copytree(sound, tmp_path / path)
        if "damaged" in path:
            (tmp_path / path / "variables" / "variables.data-00000-of-00001").unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words):
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code in (0, 1, 3, 64), done.output
    return done.output


@pytest.mark.parametrize("model", ["sound", "damaged", "tree", "sound/saved_model.pb"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_absolute_path_is_told(folder, command, model):
    written = (
        run("contract write tree") + run("contract write sound")
        if command == "contract check"
        else ""
    )
    words = COMMANDS[command].format(model)
    text = run(words)
    shutil.rmtree("out", ignore_errors=True)
    assert str(folder) not in written + text + run(f"{words} --json")


@pytest.mark.parametrize("model", ["sound", "./sound", "sound/saved_model.pb"])
def test_the_path_of_json_is_the_one_that_was_given(folder, model):
    assert json.loads(run(f"inspect {model} --json"))["path"] == model
    compared = json.loads(run(f"diff {model} tree/sound --json"))
    assert [compared[side]["path"] for side in ("first", "second")] == [model, "tree/sound"]


def test_the_paths_of_many_models_are_those_of_the_text(folder):
    described = json.loads(run("inspect tree sound --json"))["models"]
    assert [model["path"] for model in described] == ["tree/damaged", "tree/sound", "sound"]


def test_an_edit_names_the_damaged_file_of_the_source(folder):
    assert (
        "MissingFileError: damaged/variables/variables.data-00000-of-00001: no such file"
        " [SM-BUNDLE-5]" in run("edit slim damaged --out out").splitlines()
    )
    assert ".staged" not in run("edit slim tree --out out")


@pytest.mark.tensorflow
def test_the_report_of_a_migration_names_no_absolute_path(folder):
    done = CliRunner().invoke(main, ["migrate", "damaged", "--out", "out"])
    assert done.exit_code == 1, done.output
    assert str(folder) not in done.output + (folder / "out" / "report.html").read_text()
