"""A consumer is given inputs and never the recorded answers: one that returns what it finds there
is caught.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys

import model_edits as edits
import pytest
from matrix_world import REPO

# Looks for the recorded answer by the name in the request, then for any file of the folder that is
# no input.
PEEKS = """
import sys
from pathlib import Path

sys.path.insert(0, {samples!r})
from numpy_consumer import NumpyWorker

from compat_matrix.workers import protocol


class Peeks(NumpyWorker):
    def op_call(self, request):
        folder, asked = Path(request["io_dir"]).resolve(), request["request"]
        inputs = (folder / asked["inputs"]).resolve()  # a link would lead to the others
        found = [folder / str(asked.get("outputs"))]
        for place in (folder, inputs.parent):
            found += [path for path in sorted(place.glob("*.npz")) if path.resolve() != inputs and ".out" in path.name]
        for path in found:
            if path.is_file():
                Path(request["outputs"]).write_bytes(path.read_bytes())
                return {{"structure": asked.get("structure")}}
        raise FileNotFoundError("nothing is recorded here: " + ", ".join(sorted(path.name for path in folder.iterdir())))


protocol.serve(Peeks)
"""


@pytest.fixture
def consumer(tmp_path):
    program = tmp_path / "peeks.py"
    program.write_text(PEEKS.format(samples=str(REPO / "savedmodel_plugin_kit" / "samples")))
    return f"peeks={shlex.join([sys.executable, str(program)])}"


@pytest.fixture
def fixtures(tmp_path):
    folder = tmp_path / "fixtures"
    folder.mkdir()
    shutil.copytree(edits.fixture("half_plus_two").parent, folder / "half_plus_two")
    return folder


def test_in_a_run_of_the_matrix(tmp_path, fixtures, consumer):
    out = tmp_path / "out"
    places = [
        "--fixtures",
        fixtures,
        "--out",
        out,
        "-n",
        "1",
        "--consumer",
        consumer,
        "--check",
        "values",
    ]
    words = [sys.executable, "-m", "savedmodel_compat", "matrix", "run", *map(str, places)]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    (seen,) = [
        result
        for result in results
        if "/peeks@" in result["cell"] and result["outcome"].endswith(("PASS", "ERROR"))
    ]
    assert seen["outcome"] == "CALL_ERROR"
    assert "inputs.npz" in seen["message"]


def test_in_a_check_of_an_export(tmp_path, fixtures, consumer):
    words = [
        "check",
        fixtures / "half_plus_two",
        "--consumer",
        consumer,
        "--check",
        "values",
        "--out",
        tmp_path / "out",
    ]
    command = [sys.executable, "-m", "savedmodel_compat", *map(str, words)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "recorded here" in done.stdout
