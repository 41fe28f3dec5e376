"""Without TensorFlow, or with a folder that holds no artifacts, a command says what is missing and
what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import model_edits as edits
import pytest
from bare_python import without_tensorflow
from matrix_world import FUNCTION, REPO, SIGNATURE, World

INSTALL = 'pip install "savedmodel-compat[tf]"'
MODEL = edits.fixture("half_plus_two")


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return without_tensorflow(tmp_path_factory.mktemp("bare") / "environment")


def run(python, *arguments, folder):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("COMPAT_")}
    environment = {**kept, "PYTHONPATH": str(REPO)}
    words = [str(python), *map(str, arguments)]
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("call", ["load('x')", "save(None, 'x')"])
def test_the_reference_implementation_says_that_it_needs_TensorFlow(bare, tmp_path, call):
    done = run(bare, "-c", f"import reference_impl\nreference_impl.{call}", folder=tmp_path)
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: reference_impl.")
    assert INSTALL in done.stderr.splitlines()[-1]
    assert done.stderr.count('  File "') == 2, (
        done.stderr
    )  # where it was called, and where it was told


def test_what_needs_no_TensorFlow_works(bare, tmp_path):
    code = f"import reference_impl\nprint(reference_impl.inspect({str(MODEL)!r}) is not None)"
    assert run(bare, "-c", code, folder=tmp_path).stdout == "True\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("matrix run --cases-dir {cases} --out out -n 1", 3),
        (
            "matrix run --servers-only --cases-dir {cases} --out out -n 1 --server binary:/nowhere",
            64,
        ),
        ("gate run --baseline local --candidate local --out out", 4),
        ("migrate {model} --out out", 4),
        ("check {model} --out out", 3),
        ("check --servers-only {alone} --server binary:/nowhere --out out", 3),
        ("contract write {model} --answers --out contract.json", 4),
        ("plugin-check tf2", 1),
        ("runtimes doctor local", 1),
    ],
)
def test_commands_say_how_to_install_TensorFlow(bare, tmp_path, words, code):
    world = World(tmp_path)
    alone = shutil.copytree(MODEL, tmp_path / "alone")  # beside MODEL lie requests and answers
    named = {"cases": world.cases, "model": MODEL, "alone": alone}
    done = run(
        bare,
        "-m",
        "savedmodel_compat",
        *(word.format(**named) for word in words.split()),
        folder=tmp_path,
    )
    assert (done.returncode, INSTALL in done.stdout + done.stderr) == (code, True), (
        done.stdout + done.stderr
    )


def matrix_run(folder, *arguments):
    return run(
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        "--out",
        "out",
        "-n",
        "1",
        *arguments,
        folder=folder,
    )


@pytest.mark.parametrize("option", ["--fixtures {}", "--producer theirs={}"])
def test_folders_that_hold_no_artifact(tmp_path, option):
    artifact, folder = MODEL.parent, tmp_path / "artifacts"
    asked = option.format(folder).split()
    folder.mkdir()

    def said():
        done = matrix_run(tmp_path, *asked)
        assert done.returncode == 64, done.stdout + done.stderr
        assert not (tmp_path / "out").exists()
        return done.stderr

    assert f"{folder} holds no artifact" in said()
    shutil.copytree(MODEL, folder / "plain")
    assert f"{folder / 'plain'} has no provenance.json" in said()
    shutil.rmtree(folder)
    shutil.copytree(artifact, folder)
    assert f"{folder} is an artifact itself. Name the folder it lies in: {tmp_path}" in said()


def test_an_artifact_that_is_not_finished_is_not_left_out_beside_others(tmp_path):
    folder = tmp_path / "artifacts"
    for name in ("one", "two"):
        shutil.copytree(MODEL.parent, folder / name)
    (folder / "two" / "provenance.json").unlink()
    done = matrix_run(tmp_path, "--fixtures", folder)
    assert done.returncode == 64
    assert (
        f"{folder / 'two'} has no provenance.json" in done.stderr
        and "savedmodel-compat check" in done.stderr
    )


def test_fixtures_without_artifacts_beside_cases_are_nothing_to_complain_of(tmp_path):
    world = World(tmp_path)
    shutil.rmtree(world.fixtures / "old")
    world.case("gamma", [SIGNATURE, FUNCTION])
    assert world.matrix("run", "--dry-run").returncode == 0
