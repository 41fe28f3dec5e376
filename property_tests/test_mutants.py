"""The tool of mutation testing, on a project whose tests see one change, do not see another, and do
not reach a third.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from property_tests.mutants import running

pytest.importorskip("coverage")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

MODULE = """
def check(size: int) -> None:
    if size < 4:
        raise ValueError("too small")
    if size > 9:
        raise KeyError("too large")
"""
TESTS = """
import pytest

import planted.small as small


def test_small():
    with pytest.raises(ValueError):
        small.check(3)
    small.check(4)
    small.check(7)
"""


@pytest.fixture
def project(tmp_path):
    for path, text in {
        "planted/small.py": MODULE,
        "tests/test_small.py": TESTS,
        "pyproject.toml": "",
        "planted/__init__.py": "",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(project, *more):
    command = [
        sys.executable,
        "-m",
        "property_tests.mutants",
        "--root",
        str(project),
        "--out",
        str(project / "out"),
        "--jobs",
        "2",
    ]
    command += ["--modules", "planted/*.py", "--tests", "tests", *more]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_survives_a_change_is_told(project):
    said = run(project)
    tried = {
        r["key"]: (r["verdict"], r["by"])
        for r in map(json.loads, (project / "out" / "tried.jsonl").read_text().splitlines())
    }
    by_small = ("killed", "tests/test_small.py::test_small")
    assert tried["check compare size < 4 -> size <= 4"] == by_small
    assert tried["check raise raise ValueError('too small') -> pass"] == by_small
    assert tried["check compare size > 9 -> size >= 9"] == ("survived", "")
    assert tried["check raise raise KeyError('too large') -> pass"] == ("not reached", "")
    assert "survived: planted/small.py:5: check compare size > 9 -> size >= 9" in said
    assert f"| planted/small.py | {len(tried)} | {len(tried)} |" in said
    before = (project / "out" / "tried.jsonl").read_bytes()
    run(project)
    assert (project / "out" / "tried.jsonl").read_bytes() == before  # nothing is tried twice


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells what computes")
def test_only_a_change_that_waits_without_end_is_late(tmp_path):
    """One that computes may be slow because others have the processors; its CPU time is limited."""

    def computes():
        while time.process_time() < 1:
            pass
        return ["done"]

    for work, said in ((computes, ["done"]), (lambda: time.sleep(3600), None)):
        child = running.fork(tmp_path, work, None, 0.01)
        while not child.finished():
            time.sleep(0.01)
        assert (child.said, child.overdue) == (said, said is None)
