"""Execute the cells of a prepared folder in pytest, in one or many processes.

`compat_matrix.pytest_plugin` collects them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_matrix.cells.plan import ASKING, MAKING, PLAN_FILE, Plan
from savedmodel_common import interrupts
from savedmodel_common.writing import write_text

CELLS_FILE = "cells.txt"
QUIET = "-q"  # of pytest; the progress is not shown then
INTERRUPTED, NO_TESTS_COLLECTED = 2, 5  # of pytest


class RunError(Exception):
    """The run cannot start or continue; the message says why.

    It is a usage error unless ``harness`` is set.
    """

    def __init__(self, message: str, harness: bool = False) -> None:
        super().__init__(message)
        self.harness = harness


def execute(
    out: Path, plan: Plan, wanted: set[str], processes: int, pytest_args: Sequence[str]
) -> None:
    """Run the cells ``wanted`` of the prepared folder in pytest.

    Raises RunError if pytest fails.

    If many runtimes answer, a first session makes all artifacts; then each runtime is asked about
    all of them.
    """
    write_text(out / CELLS_FILE, "".join(f"{cell_id}\n" for cell_id in sorted(wanted)))
    phases = [""]
    if plan.in_phases:
        made = {plan.by_id[cell_id].is_production for cell_id in wanted}
        phases = [phase for phase, makes in ((MAKING, True), (ASKING, False)) if makes in made] or [
            ""
        ]
    for phase in phases:
        status = _session(out, phase, processes, pytest_args)
        if status == NO_TESTS_COLLECTED and wanted and phase != MAKING:  # -k
            raise RunError("the selection holds no cell that could be executed")
        if status == INTERRUPTED:
            break  # by -x


class _Interruption:
    """A pytest plugin that notes whether a session was interrupted from outside, and tells the
    other processes.

    They would notice only after seconds, since pytest-xdist ends them by a message, which is not
    read while a cell runs.
    """

    came = False

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self.came = excinfo.type is KeyboardInterrupt  # pytest-xdist raises a derived class for -x
        if self.came:
            import psutil

            for process in psutil.Process().children():
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    if os.getsid(process.pid) == os.getsid(
                        0
                    ):  # a worker has its own session; its host ends it
                        process.send_signal(signal.SIGINT)


class _SystemError:
    """A pytest plugin that notes an error of the operating system, such as a full disk.

    pytest would show it as an INTERNALERROR of its own, with a traceback.
    """

    error: OSError | None = None

    def pytest_internalerror(self, excinfo: Any) -> bool | None:
        if not isinstance(excinfo.value, OSError):
            return None
        self.error = self.error or excinfo.value
        return True  # pytest prints nothing


def _session(out: Path, phase: str, processes: int, pytest_args: Sequence[str]) -> int:
    """Run one pytest session and return its exit status.

    Raises KeyboardInterrupt if it was interrupted from outside, and OSError if the results cannot
    be written.
    """
    import pytest

    arguments = [str(out / PLAN_FILE), "-p", "compat_matrix.pytest_plugin"]
    # Files around the output folder (conftest.py, pyproject.toml) and installed plugins have no
    # effect.
    arguments += [
        "-c",
        os.devnull,
        "--rootdir",
        str(out),
        "--confcutdir",
        str(out),
        "-p",
        "no:cacheprovider",
    ]
    arguments += [
        "-p",
        "no:tmpdir",
    ]  # a parallel run would leave its folder in the system's temporary folder
    arguments += ["--capture=no"]  # a worker prints to its own files
    arguments += [
        "--compat-cells",
        str(out / CELLS_FILE),
        *(["--compat-phase", phase] if phase else []),
    ]
    if processes > 1:
        arguments += ["-p", "xdist", "-n", str(processes), "--dist", "loadgroup"]
    if not any(argument.startswith("-v") for argument in pytest_args):
        arguments += ["-p", "no:terminalreporter"]  # it would report an interruption a second time
        arguments += [] if QUIET in pytest_args else ["--compat-progress"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        interruption, system = _Interruption(), _SystemError()
        status = int(pytest.main([*arguments, *pytest_args], plugins=[interruption, system]))
    interrupts.check()
    if interruption.came:
        raise KeyboardInterrupt
    if system.error is not None:
        raise system.error
    if status == pytest.ExitCode.USAGE_ERROR:
        raise RunError("pytest refused its arguments")
    if status not in (0, 1, INTERRUPTED, NO_TESTS_COLLECTED):
        raise RunError(f"pytest ended with status {status}", harness=True)
    return status
