"""``matrix run --past`` and ``--pasts``: results must not depend on what worker processes did
before. Needs no TensorFlow.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys

import pytest
from plugin_world import ROOT, SAMPLES, ours

from compat_matrix.cells.plan import Plan
from compat_matrix.runtimes.pasts import Past

CASE = "frozen_constants"
# A consumer of a plug-in. Its answer is a unit in the last place away under another PYTHONHASHSEED,
# as that of a program that adds the elements of a set may be.
PLANTED = """
import os

import numpy as np
from numpy_consumer import NumpyWorker
from compat_matrix.workers import protocol, tensors


class Planted(NumpyWorker):
    name = "planted"

    def versions(self):
        return dict(super().versions(), planted="1.0")

    def call_signature(self, model, key, inputs):
        found = super().call_signature(model, key, inputs)
        if os.environ["PYTHONHASHSEED"] == "0":
            return found
        return {name: tensors.from_numpy(np.nextafter(one.array, np.inf)) for name, one in found.items()}


protocol.serve(Planted)
"""


@pytest.fixture
def world(tmp_path):
    """A folder with one committed artifact, the sample consumer and a planted one."""
    shutil.copytree(ROOT / "fixtures_v1" / CASE, tmp_path / "fixtures" / CASE)
    shutil.copy(SAMPLES / "numpy_consumer.py", tmp_path)
    (tmp_path / "planted.py").write_text(PLANTED)
    return tmp_path


def run(world, *words, script="numpy_consumer.py", name="numpy_sample", out="out"):
    """Run the matrix of the artifact and one consumer in a process."""
    asked = ("-n", "1", "--fixtures", str(world / "fixtures"), "--check", "load,values")
    consumer = ("--consumer", f"{name}={sys.executable} {script}")
    return ours(["matrix", "run", "--out", out, *asked, *consumer, *words], world)


def read(world, name, out="out"):
    return json.loads((world / out / name).read_text())


def test_a_consumer_without_a_memory_is_green_in_every_past(world):
    done = run(world, "--pasts", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 pairs" in done.stdout and "0 depend" in done.stdout
    found = read(world, "pasts.json")
    assert [one["past"]["seed"] for one in found["pasts"]] == [0, 1, 2]
    assert (found["compared"], found["differences"], found["exit_code"]) == (4, [], 0)
    for one in found["pasts"]:
        assert Past.from_json(one["past"]) == Past.of_seed(one["past"]["seed"])
        assert one["past"] == read(world, "run.json", f"out/{one['folder']}")["past"]


def test_a_consumer_that_depends_on_the_hash_seed_is_red_and_the_replay_shows_it(world):
    done = run(world, "--pasts", "1", script="planted.py", name="planted")
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = read(world, "pasts.json")["differences"]
    cell = f"{CASE}/fixture@1.4.1/planted@1.0/values"
    assert (found["cell"], found["past"], found["differs"]) == (cell, 1, "outcome")
    assert f"{cell} depends on the past: outcome" in done.stdout
    assert "past 0: PASS" in done.stdout and "past 1: FAIL_VALUE request " in done.stdout
    assert (world / "out" / found["evidence"]["past-1"]).is_dir()
    seen = []
    for command in found["replay"]:
        words = shlex.split(command)[1:]
        again = ours(words, world)
        seen.append((words[words.index("--past") + 1], again.returncode))
        seed = int(words[words.index("--past") + 1])
        assert f"in past {seed} (PYTHONHASHSEED={Past.of_seed(seed).hash_seed}" in again.stdout
    assert seen == [("0", 0), ("1", 1)]


def test_json_has_the_comparison(world):
    done = run(world, "--pasts", "1", "--json", script="planted.py", name="planted")
    assert json.loads(done.stdout) == read(world, "pasts.json")


def test_a_cell_names_the_past_in_its_own_replay(world):
    assert run(world, "--past", "7").returncode == 0
    results = [json.loads(line) for line in (world / "out/results.jsonl").read_text().splitlines()]
    asked = [one for one in results if one["outcome"] == "PASS"]
    assert asked and all("--past 7 --cell" in one["replay"] for one in asked)
    assert read(world, "summary.json")["run"]["past"]["seed"] == 7


def test_a_run_is_not_resumed_in_another_past(world):
    assert run(world, "--past", "1").returncode == 0
    done = run(world, "--past", "2", "--resume")
    assert done.returncode == 64 and "past 1" in done.stderr and "past 2" in done.stderr
    assert run(world, "--past", "1", "--resume").returncode == 0


def test_another_folder_is_not_touched(world):
    (world / "out").mkdir()
    (world / "out" / "notes.txt").write_text("mine")
    done = run(world, "--pasts", "1")
    assert done.returncode == 64 and "notes.txt" in done.stderr
    assert (world / "out" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--past", "1", "--pasts", "2"), "choose one"),
        (("--pasts", "0"), "--pasts"),
        (("--past", "-1"), "--past"),
    ],
)
def test_pasts_that_cannot_be_had(world, words, said):
    done = run(world, *words)
    assert done.returncode == 64 and said in done.stderr


def test_servers_have_no_past(world):
    done = ours(["matrix", "run", "--out", "out", "--servers-only", "--past", "1"], world)
    assert done.returncode == 64 and "worker processes" in done.stderr


def test_nothing_compared_is_incomplete(tmp_path):
    """The only consumer is a model server that is not there."""
    shutil.copytree(ROOT / "fixtures_v1" / CASE, tmp_path / "fixtures" / CASE)
    asked = [
        "--fixtures",
        "fixtures",
        "--server",
        "binary:./absent",
        "--consumer",
        "serving",
        "--pasts",
        "1",
    ]
    done = ours(["matrix", "run", "--out", "out", "-n", "1", *asked], tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "compared 0 pairs" in done.stdout and "nothing was compared" in done.stdout


def test_a_past_shuffles_the_plan(world):
    assert run(world, "--past", "3").returncode == 0
    shuffled = Plan.read(world / "out" / "plan.json")
    assert run(world, out="usual").returncode == 0
    usual = Plan.read(world / "usual" / "plan.json")
    assert sorted(shuffled.by_id) == sorted(usual.by_id) and list(shuffled.by_id) != list(
        usual.by_id
    )
