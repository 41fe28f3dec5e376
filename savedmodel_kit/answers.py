"""Level L3: the answers of a program that speaks the worker protocol (docs/exporters/protocol.md).

A run of the matrix asks the program about the artifacts of the kit: load, signatures, values. A
wrong answer, a crash or a hang breaks the constraints that the artifact shows. A clean refusal
breaks none, because no evaluator has to support every op.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
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
      folders: the folders of the models by name. Artifacts without a provenance are left out.
      out: a folder for the output of the runs.

    Raises:
      RunError: the matrix cannot run, for example because the extra `matrix` is not installed.
    """
    fixtures, names = out / "fixtures", dict[tuple[str, str], str]()
    fixtures.mkdir(parents=True)
    for number, (name, model) in enumerate(folders.items()):
        if (model.parent / "provenance.json").exists():
            (fixtures / str(number)).symlink_to(model.parent.resolve())
            names[_case_and_writer(model.parent)] = name
    if not names:
        return {}
    writers = {writer.partition("@")[0] for _, writer in names}
    _run(command, fixtures, sorted(writers), out / "run")
    answered = _answered(out / "run" / "results.jsonl")
    return {names[key]: one for key, one in answered.items() if key in names}


def _case_and_writer(artifact: Path) -> tuple[str, str]:
    """Return the two parts of a cell that name an artifact: ``("pbtxt", "fixture@1.15.5")``."""
    provenance = json.loads((artifact / "provenance.json").read_text("utf-8"))
    writer = provenance["producer"]
    return provenance["case"], f"{writer['name']}@{writer['versions']['tensorflow']}"


def _run(command: str, fixtures: Path, writers: Sequence[str], out: Path) -> None:
    words = [
        *(sys.executable, "-m", "savedmodel_compat", "matrix", "run", "--out", str(out)),
        *("--fixtures", str(fixtures), "--producer", ",".join(writers)),
        *("--consumer", f"{NAME}={command}", "--check", ",".join(_CHECKS)),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not (out / "results.jsonl").exists():
        raise RunError(f"the matrix could not run: {(done.stderr or done.stdout).strip()}")


def _answered(results: Path) -> dict[tuple[str, str], Answered]:
    """Return the outcome for each case and writer, from the results of a run."""
    found: dict[tuple[str, str], Answered] = {}
    for result in _of_worker(results):
        case, writer, _, check = result["cell"].split("/")
        key = case, writer
        before = found.get(key, Answered())
        told = f"{check}: {result['outcome']}: {result['message']}"
        if result["outcome"] == "PASS":
            found[key] = before
        elif result["outcome"] in _REFUSALS:
            found[key] = before._replace(refused=before.refused or told)
        else:
            found[key] = before._replace(fault=before.fault or told)
    return found


def _of_worker(results: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of the cells that the program was asked."""
    for line in results.read_text("utf-8").splitlines():
        result: dict[str, Any] = json.loads(line)
        consumer = result["cell"].split("/")[2].partition("@")[0]
        if consumer == NAME and result["outcome"] not in _NOT_ASKED:
            yield result
