"""The recipes of CONTRIBUTING.md, followed in a copy of the project: one file each, which the
command under it finds.
"""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shown_commands

from compat_matrix.verdict import DEFAULT_PATH, NO_ENTRIES
from savedmodel_common.entry_points import CHECKS, COMMANDS, DISTRIBUTION
from savedmodel_common.packages import FIXTURES, OURS

ROOT = Path(__file__).parents[2]
RECIPES = shown_commands.recipes()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    for package in (*OURS, *FIXTURES):
        shutil.copytree(ROOT / package, folder / package)  # what is compiled, too
    # Of the models, and of what is known of them, little is left: each command plans all of them.
    shutil.copyfile(NO_ENTRIES, folder / "compat_matrix/verdict" / DEFAULT_PATH.name)
    for path in (
        *(folder / "compat_matrix/cases").glob("[a-z]*.py"),
        *(folder / "fixtures_v1").glob("*/"),
    ):
        if not path.name.startswith(("_", "half_plus_two", "simple_save", "fn_flat")):
            (shutil.rmtree if path.is_dir() else Path.unlink)(path)
    for path, text, _ in RECIPES:
        assert not (folder / path).exists()
        (folder / path).write_text(text)
    install_command(folder)
    return folder


def install_command(folder):
    """What `pip install -e .` writes for the line that the recipe adds to pyproject.toml."""
    line = re.search(
        r'^`(count-nodes) = "(.*)"`', (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    known = importlib.metadata.distribution(DISTRIBUTION)
    points = [point for point in known.entry_points if point.group == COMMANDS]
    lines = [f"{point.name} = {point.value}" for point in points] + [f"{line[1]} = {line[2]}"]
    written = folder / "savedmodel_compat-0.1.0.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Name: {DISTRIBUTION}\nVersion: 0.1.0\n")
    others = [point for point in known.entry_points if point.group == CHECKS]
    lines += [f"[{CHECKS}]", *(f"{point.name} = {point.value}" for point in others)]
    (written / "entry_points.txt").write_text("\n".join([f"[{COMMANDS}]", *lines, ""]))


def run(copy, command, tmp_path):
    words = [
        str(tmp_path / "out") if word.startswith("/tmp/") and str(tmp_path) not in word else word
        for word in shlex.split(command)[1:]
    ]
    return subprocess.run(
        [sys.executable, "-m", "savedmodel_compat", *words],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )


def recipe(folder):
    (found,) = (command for path, _, command in RECIPES if Path(path).parent.name == folder)
    return found


def test_there_is_a_recipe_for_everything_that_can_be_added():
    assert sorted(Path(path).parent.name for path, _, _ in RECIPES) == [
        "cases",
        "commands",
        "kinds",
        "rules",
        "workers",
    ]


def test_a_rule(copy, tmp_path):
    done = run(copy, recipe("rules"), tmp_path)
    assert done.returncode == 0, done.stderr  # of severity `info`
    assert (
        "SMC299" in done.stdout and "signature 'serving_default' has 15 characters" in done.stdout
    )
    explained = run(copy, "savedmodel-compat verify --rule SMC299", tmp_path)
    assert "signature-name-long" in explained.stdout


def test_a_command(copy, tmp_path):
    done = run(copy, recipe("commands"), tmp_path)
    assert (done.returncode, done.stdout[:7]) == (0, "serve: "), done
    text = run(copy, "savedmodel-compat --help", tmp_path).stdout
    section = text.partition("Other commands:\n")[2].partition("\n\n")[0]
    assert re.search(r"^  count-nodes +Count the nodes of a model\.$", section, re.MULTILINE), text


def test_a_case_may_be_limited_to_an_added_check(copy, tmp_path):
    (case,) = (text for path, text, _ in RECIPES if Path(path).parent.name == "cases")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "limited.py").write_text(
        case.replace("\n\n\ndef", '\nCHECKS = ("repeated",)\n\n\ndef', 1)
    )
    done = run(
        copy, f"savedmodel-compat matrix run --dry-run --cases-dir {tmp_path / 'cases'}", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "limited/" in done.stdout and "/repeated" in done.stdout


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("folder", "cell"),
    [
        ("cases", "doubled_sum/{0}/tf2@{1}/values"),
        ("kinds", "half_plus_two/{0}/tf2@{1}/repeated"),
        ("workers", "half_plus_two/{0}/tf2_graph@{1}/load"),
    ],
)
def test_what_cells_are_made_of(copy, tmp_path, folder, cell):
    done = run(copy, recipe(folder) + " -n 1", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    pattern = re.escape(cell).replace(r"\{0\}", r"\w+@[^/]+").replace(r"\{1\}", "[^/]+")
    passed = re.findall(
        rf'"cell": "({pattern})".*?"outcome": "PASS"', (tmp_path / "out/results.jsonl").read_text()
    )
    assert passed
