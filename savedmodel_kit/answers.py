"""Level L3: the answers of a program that speaks the worker protocol (docs/protocol.md).

A run of the matrix asks the program about the artifacts of the kit: load, signatures, values. A
wrong answer, a crash or a hang breaks the constraints that the artifact shows. A clean refusal
breaks none, because no evaluator has to support every op.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

NAME = "kit_worker"  # of the program in the matrix
_CHECKS = ("load", "signatures", "values")
_REFUSALS = frozenset({"LOAD_ERROR", "CALL_ERROR", "REJECTED"})
_NOT_ASKED = frozenset({"NOT_RUN", "NOT_APPLICABLE"})


class RunError(RuntimeError):
    """The matrix could not ask the program."""


class Answered(NamedTuple):
    """The outcome for one artifact.

    Attributes:
      fault: a wrong answer, a crash or a hang; None without one.
      refused: the reason of a refusal; None if every answer was due and right.
    """

    fault: Optional[str] = None
    refused: Optional[str] = None


def ask_worker(command: str, folders: Mapping[str, Path], out: Path) -> dict[str, Answered]:
    """Return what came of each artifact that the program was asked about.

    Args:
      command: the command that starts the program.
      folders: the folders of the models by name.
      out: a folder for the output of the runs.

    Raises:
      RunError: the matrix cannot run, for example because the extra `matrix` is not installed.
    """
    found: dict[str, Answered] = {}
    for number, root in enumerate(sorted({model.parents[1] for model in folders.values()})):
        run = out / str(number)
        _run(command, root, run)
        names = {
            model.parent.name: name for name, model in folders.items() if model.parents[1] == root
        }
        for case, answered in _answered(run / "results.jsonl").items():
            if case in names:
                found[names[case]] = answered
    return found


def _run(command: str, fixtures: Path, out: Path) -> None:
    words = [
        *(sys.executable, "-m", "compat_matrix", "matrix", "run", "--out", str(out)),
        *("--fixtures", str(fixtures), "--producer", "fixture"),
        *("--consumer", f"{NAME}={command}", "--check", ",".join(_CHECKS)),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not (out / "results.jsonl").exists():
        raise RunError(f"the matrix could not run: {(done.stderr or done.stdout).strip()}")


def _answered(results: Path) -> dict[str, Answered]:
    """Return what came of each case, from the results of a run."""
    found: dict[str, Answered] = {}
    for result in _of_worker(results):
        case, check = result["cell"].split("/")[0], result["cell"].rpartition("/")[2]
        before = found.get(case, Answered())
        if result["outcome"] == "PASS":
            found[case] = before
            continue
        told = f"{check}: {result['outcome']}: {result['message']}"
        if result["outcome"] in _REFUSALS:
            found[case] = before._replace(refused=before.refused or told)
        else:
            found[case] = before._replace(fault=before.fault or told)
    return found


def _of_worker(results: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of the cells that the program was asked."""
    for line in results.read_text("utf-8").splitlines():
        result: dict[str, Any] = json.loads(line)
        consumer = result["cell"].split("/")[2].partition("@")[0]
        if consumer == NAME and result["outcome"] not in _NOT_ASKED:
            yield result
