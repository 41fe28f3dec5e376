"""Asks a program about the models of a kit, one process for each, or reads its answers from a file.

The protocol: ``COMMAND FOLDER`` prints the meaning of the model in FOLDER as one JSON object and
exits with 0, or exits with 2 and gives the reason of its refusal on stderr. Any other exit is a
failure of the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Optional

REFUSED = 2  # the exit code of a refusal
_LONGEST_REASON = 500  # characters


class Answer(NamedTuple):
    """The answer of a program about one model. Exactly one attribute is given.

    Attributes:
      meaning: the members of a meaning that the program reads.
      refused: the reason why it refuses the model.
      failed: how it failed: a crash, no answer in time, output that is not JSON.
    """

    meaning: Optional[dict[str, Any]] = None
    refused: Optional[str] = None
    failed: Optional[str] = None


class ResultsError(ValueError):
    """A file of results has a line that is not an answer."""


def ask_all(
    command: Sequence[str], folders: Mapping[str, Path], seconds: float
) -> dict[str, Answer]:
    """Return the answer of a program about each model, given the folders of the models by name."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        pending = {
            name: pool.submit(ask, command, folder, seconds) for name, folder in folders.items()
        }
        return {name: one.result() for name, one in pending.items()}


def ask(command: Sequence[str], folder: Path, seconds: float) -> Answer:
    """Return the answer of a program about the model in a folder.

    Raises:
      OSError: the program cannot be started.
    """
    with subprocess.Popen(
        [*command, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Answer(failed=f"no answer in {seconds:g} s")
    reason = said.decode("utf-8", "replace").strip()[-_LONGEST_REASON:]
    if process.returncode == REFUSED:
        return Answer(refused=reason or "refused without a reason")
    if process.returncode != 0:
        return Answer(failed=f"exit {process.returncode}: {reason}")
    try:
        meaning = json.loads(out)
    except ValueError as error:
        return Answer(failed=f"the output is not JSON: {error}")
    if not isinstance(meaning, dict):
        return Answer(failed="the output is not a JSON object")
    return Answer(meaning=meaning)


def read_results(file: Path) -> dict[str, Answer]:
    """Return the answers in a file: a JSON object on each line, with ``name`` and either
    ``meaning`` or ``refused``.

    Raises:
      ResultsError: a line is something else, or a name occurs twice.
      OSError: the file cannot be read.
    """
    answers: dict[str, Answer] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        name, answer = _result(line, f"{file}: line {number}")
        if name in answers:
            raise ResultsError(f"{file}: line {number}: a second answer for {name!r}")
        answers[name] = answer
    return answers


def _result(line: str, where: str) -> tuple[str, Answer]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ResultsError(f"{where}: not JSON: {error}") from None
    given = set(found) if isinstance(found, dict) else set()
    if "name" not in given or len(given & {"meaning", "refused", "failed"}) != 1:
        reason = "an answer has the members name, and meaning, refused or failed"
        raise ResultsError(f"{where}: {reason}")
    if "meaning" in given and not isinstance(found["meaning"], dict):
        raise ResultsError(f"{where}: meaning is not an object")
    kept = {key: found[key] for key in given & set(Answer._fields)}
    return str(found["name"]), Answer(**kept)
