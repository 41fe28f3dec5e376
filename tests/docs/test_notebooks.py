"""Every notebook in ``examples`` runs and shows what it shows in the repository."""

import json
import re
import subprocess
import sys

import pytest

from docs import notebooks
from docs.transcripts import ROOT


def check(notebook):
    command = [sys.executable, "-m", "docs.notebooks", "--check", str(notebook)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[pytest.mark.tensorflow] if notebooks.needs_tensorflow(path) else [],
        )
        for path in notebooks.notebooks()
    ],
)
def test_a_notebook_shows_what_its_cells_show(notebook):
    done = check(notebook)
    assert (done.returncode, done.stdout) == (0, "stale: none\n"), done.stderr


def test_one_of_them_needs_no_tensorflow():
    assert sorted(map(notebooks.needs_tensorflow, notebooks.notebooks())) == [False, True]


@pytest.mark.parametrize("notebook", notebooks.notebooks(), ids=lambda path: path.name)
def test_its_links_lead_somewhere(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "".join(
        line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"]
    )
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert (
        targets and [target for target in targets if not (notebook.parent / target).is_file()] == []
    )


def test_what_is_no_longer_shown_is_noticed_and_written(tmp_path):
    notebook = tmp_path / "one.ipynb"
    output = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": 1,
        "metadata": {},
        "source": ["print(1 + 1)"],
        "outputs": [output],
    }
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    notebook.write_text(text)
    done = check(notebook)
    assert (done.returncode, done.stdout, notebook.read_text()) == (1, "stale: one.ipynb\n", text)
    subprocess.run(
        [sys.executable, "-m", "docs.notebooks", str(notebook)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert json.loads(notebook.read_text())["cells"][0]["outputs"][0]["text"] == ["2\n"]
    assert check(notebook).stdout == "stale: none\n"
