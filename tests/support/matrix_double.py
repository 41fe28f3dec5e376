"""A pytest plugin that stands in for the workers: answers cells from a script, through the plugin's
documented hook.

``MATRIX_DOUBLE`` names a JSON file, ``[[pattern of cell ids, action], ...]``; the first that fits
decides, PASS without one. Each executed cell is noted in ``executed.txt`` beside that file, with
the id of the process.
"""

import fnmatch
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from compat_matrix.cells.results import Observation
from compat_matrix.checks import NotProduced


@pytest.hookimpl(tryfirst=True)
def pytest_compat_run_cell(cell, out):
    script = Path(os.environ["MATRIX_DOUBLE"])
    with (script.parent / "executed.txt").open("a") as log:
        log.write(f"{os.getpid()} {cell.id}\n")
    action = next(
        (
            action
            for pattern, action in json.loads(script.read_text())
            if fnmatch.fnmatchcase(cell.id, pattern)
        ),
        {},
    )
    if (
        "tries" in action
    ):  # one action for each execution of the cell, by whatever process; the last one stays
        before = (
            sum(
                line.split()[1] == cell.id
                for line in (script.parent / "executed.txt").read_text().splitlines()
            )
            - 1
        )
        action = action["tries"][min(before, len(action["tries"]) - 1)]
    dies = None
    if "raise" in action:
        raise RuntimeError(action["raise"])
    if "system_exit" in action:
        sys.exit(action["system_exit"])
    if "die" in action:
        os._exit(action["die"])
    if "interrupt" in action:
        os.kill(os.getpid(), signal.SIGINT)
    if "not_produced" in action:
        raise NotProduced(action["not_produced"])
    if "return" in action:
        return action["return"]
    while "wait_for" in action and not (script.parent / action["wait_for"]).exists():
        time.sleep(0.02)
    if set(action) & {"make_and_die", "wait_for"}:
        dies, action = action.get("make_and_die"), {}
    observation = Observation(**{"outcome": "PASS", "versions": {"tensorflow": "2.99.0"}, **action})
    if cell.is_production and observation.outcome == "PASS":
        folder = cell.artifact_dir(out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "provenance.json").write_text("{}")
    if dies is not None:
        os._exit(dies)
    return observation
