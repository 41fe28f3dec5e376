"""Commands that became one: the old names work, name the new ones on stderr, and print and exit as
the new ones do.
"""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import fixture

from savedmodel_compat.cli import main

MODEL = str(fixture("half_plus_two"))


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.mark.parametrize(
    ("old", "new", "command"),
    [
        ("serve-check", "check --servers-only", "check"),
        ("grid", "matrix run --grid", "matrix run"),
        ("serving run", "matrix run --servers-only", "matrix run"),
        ("matrix diff", "gate --dry-run --full", "gate"),
        ("ops needs", "compat --ops", "compat"),
        ("serving doctor", "doctor", "doctor"),
        ("runtimes doctor", "doctor", "doctor"),
    ],
)
def test_an_old_name_is_hidden_and_names_the_new_one(old, new, command):
    done = run(*old.split(), "--help")
    assert (done.exit_code, done.stderr) == (0, f"{old} is called {new} now\n")
    assert done.stdout.startswith(f"Usage: main {command} [OPTIONS]")
    *group, name = old.split()
    assert f"\n  {name} " not in run(*group, "--help").stdout


def test_needs_prints_what_compat_prints_of_ops():
    old, new = run("ops", "needs", MODEL, "--json"), run("compat", "--ops", MODEL, "--json")
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout)
    assert json.loads(new.stdout)["meta_graphs"][0]["parts"]


def test_compat_asks_about_the_ops_of_many_models(tmp_path):
    shutil.copytree(MODEL, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "saved_model.pb").write_bytes(b"no model")
    done = run("compat", "--ops", tmp_path, "--json")
    good, bad = json.loads(done.stdout)["models"]
    assert (done.exit_code, good["path"], bool(good["meta_graphs"])) == (
        1,
        str(tmp_path / "a"),
        True,
    )
    assert "error" in bad and "meta_graphs" not in bad
    assert f"{tmp_path / 'b'}: " in run("compat", "--ops", tmp_path).stdout
    assert run("compat", "--ops", "--target", "2.15", MODEL).exit_code == 64


@pytest.mark.parametrize(
    "words",
    [
        ("serve-check", MODEL),
        ("check", "--servers-only", MODEL),
        ("check", "--servers-only", "--server", "standin", "--check", "values", MODEL),
        ("serving", "run", "--out", "out", "--consumer", "tf2"),
        ("matrix", "run", "--out", "out", "--grid", "--server", "standin"),
        ("matrix", "run", "--out", "out", "--no-install"),
        ("matrix", "run", "--out", "out", "--no-build"),
        ("matrix", "run", "--out", "out", "--servers-only", "--all-checks"),
        ("gate", "--dry-run", "--baseline", "local", "--candidate", "local"),
        ("matrix", "diff", "nowhere", "nothing"),
        ("doctor", "--server", "remote:x"),
        ("doctor", "--runtime", "x y"),
    ],
)
def test_wrong_usage(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.exit_code == 64, done.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_no_runtime_either(tmp_path):
    assert run("matrix", "diff", tmp_path, tmp_path).exit_code == 64
