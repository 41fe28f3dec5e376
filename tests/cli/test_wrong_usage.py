"""Options that exclude each other are wrong usage, and ``ops needs`` reads many models."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import fixture

from compat_matrix.commands.ops import ops
from savedmodel_compat.cli import main

MODEL = str(fixture("half_plus_two"))


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def needs(*arguments):
    return CliRunner().invoke(
        ops, ["needs", *map(str, arguments)], standalone_mode=False, catch_exceptions=False
    )


def test_the_ops_of_many_models_are_shown(tmp_path):
    shutil.copytree(MODEL, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "saved_model.pb").write_bytes(b"no model")
    done = needs(tmp_path, "--json")
    good, bad = json.loads(done.stdout)["models"]
    assert (done.return_value, good["path"], bool(good["meta_graphs"])) == (
        1,
        str(tmp_path / "a"),
        True,
    )
    assert "error" in bad and "meta_graphs" not in bad
    assert f"{tmp_path / 'b'}: " in needs(tmp_path).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--servers-only", MODEL),
        ("check", "--servers-only", "--server", "standin", "--check", "values", MODEL),
        ("matrix", "run", "--servers-only", "--out", "out", "--consumer", "tf2"),
        ("matrix", "run", "--out", "out", "--grid", "--server", "standin"),
        ("matrix", "run", "--out", "out", "--no-install"),
        ("matrix", "run", "--out", "out", "--servers-only", "--all-checks"),
        ("gate", "compare", "--full", "nowhere", "nothing"),
        ("runtimes", "doctor", "--server", "remote:x"),
        ("runtimes", "doctor", "x y"),
    ],
)
def test_wrong_usage(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.exit_code == 64, done.output
    assert list(tmp_path.iterdir()) == []
