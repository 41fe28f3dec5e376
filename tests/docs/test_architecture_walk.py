"""The walk of one cell in ARCHITECTURE.md is the walk of a run: the functions that it names exist, and are
called in this order.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"\[`[\w/]+\.py`\]\((?P<file>[\w/]+\.py)\), `(?P<function>\w+)`")


def section():
    """Return the text of the walk."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return text.partition("## The walk of one cell\n")[2].partition("\n## ")[0]


def walk():
    """Return the pairs of file and function that the walk names."""
    return [(match["file"], match["function"]) for match in STEP.finditer(section())]


def in_order(steps, called):
    """Return whether all steps were called, each for the first time after the one before it."""
    places = [called.index(step) if step in called else -1 for step in steps]
    return -1 not in places and places == sorted(places)


def test_each_step_names_a_function():
    numbers = re.findall(r"^(\d+)\. \[`[^`]*`\]\([^)]*\), `", section(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 11)]


def test_a_wrong_walk_is_found():
    called = [("a.py", "one"), ("b.py", "two")]
    assert in_order(called, called)
    assert not in_order(called[::-1], called) and not in_order([("c.py", "three")], called)


@pytest.mark.tensorflow
def test_the_walk_is_that_of_a_run(tmp_path):
    program = ROOT / "tests" / "support" / "traced_functions.py"
    cell = ["--case", "half_plus_two", "--consumer", "c_api", "--check", "values"]
    command = [
        sys.executable,
        program,
        "matrix",
        "run",
        *cell,
        "-n",
        "1",
        "--out",
        tmp_path / "out",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
    }  # the files of the page, not installed ones
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    called = [tuple(one) for one in json.loads(done.stdout.splitlines()[-1])]
    steps = walk()
    assert len(steps) == 12 and in_order(steps, called), [
        (step, called.index(step) if step in called else None) for step in steps
    ]
