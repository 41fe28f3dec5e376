"""Ratio benchmarks: ours against what TensorFlow ships, alternating in one run, so that a busy
machine slows both.

A benchmark is a module of this package with a function ``run(repeats)``, which returns rows:
`Comparison`, `Figure`, `NotMeasured`, or those of `benchmarks.memory`, `benchmarks.migrate` and
`benchmarks.growth`. `benchmarks.run` finds it, and `benchmarks.record` keeps the rows.
"""

from __future__ import annotations

import gc
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Optional

_READ = 2**16  # bytes of what a program printed


def environment(*paths: str) -> dict[str, str]:
    """Return the environment of a measured program: our packages after ``paths``; compiled
    bytecode, as in an installation.
    """
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join([*paths, str(Path(__file__).parents[1])]),
    }


def tensorflow_version() -> str:
    """The version of the installed TensorFlow, which is not imported for it.

    Raises PackageNotFoundError: there is none.
    """
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-intel"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise metadata.PackageNotFoundError("tensorflow")


@dataclass(frozen=True)
class Comparison:
    """Two ways to do one thing, timed in pairs.

    Attributes:
      name: what is done.
      ours, theirs: the two ways.
      ours_seconds, theirs_seconds: wall time of every run; runs of equal index belong together.
      goal: the median of the ratios ours / theirs should be below this; None: nothing is aimed at.
      notes: sizes and versions.
      ours_cpu, theirs_cpu: seconds of the processor (user and system), where they were measured:
        whole programs.
    """

    name: str
    ours: str
    theirs: str
    ours_seconds: tuple[float, ...]
    theirs_seconds: tuple[float, ...]
    goal: Optional[float]
    notes: str
    ours_cpu: tuple[float, ...] = ()
    theirs_cpu: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        return _median_ratio(self.ours_seconds, self.theirs_seconds)

    @property
    def cpu_ratio(self) -> Optional[float]:
        """The same of the processor's time, which a machine that is busy with other things changes
        less; None: not measured.
        """
        return _median_ratio(self.ours_cpu, self.theirs_cpu) if self.ours_cpu else None

    @property
    def summary(self) -> Summary:
        """The medians, as the tables and the record have them."""
        seconds = [statistics.median(times) for times in (self.ours_seconds, self.theirs_seconds)]
        return Summary(
            self.name,
            self.notes,
            self.ours,
            self.theirs,
            *seconds,
            self.ratio,
            self.cpu_ratio,
            self.goal,
        )

    @property
    def reached(self) -> bool:
        return self.summary.reached


@dataclass(frozen=True)
class Summary:
    """The medians of a `Comparison`: seconds of each way, ratio of wall times and of CPU times."""

    name: str
    notes: str
    ours: str
    theirs: str
    ours_seconds: float
    theirs_seconds: float
    ratio: float
    cpu_ratio: Optional[float]
    goal: Optional[float]

    @property
    def reached(self) -> bool:
        return self.goal is None or max(self.ratio, self.cpu_ratio or 0.0) < self.goal


@dataclass(frozen=True)
class Figure:
    """One number, which should be below ``goal``."""

    name: str
    value: float
    unit: str
    goal: float

    @property
    def reached(self) -> bool:
        return self.value < self.goal


@dataclass(frozen=True)
class NotMeasured:
    """A row that could not be measured here, and why; ``failed``: it should have been."""

    name: str
    reason: str
    failed: bool = False

    @property
    def reached(self) -> bool:
        return not self.failed


class Refused(RuntimeError):
    """A program that did not do its work. The text is the reason that the program gave."""


def attempt(name: str, measure: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the rows of one measurement.

    If it fails, return a row that says why: the other rows of the page are kept.
    """
    try:
        found = measure(*arguments)
    except Exception as error:
        traceback.print_exc()
        reason = (str(error).strip() or "no reason given").splitlines()[0]
        return [NotMeasured(name, f"{type(error).__name__}: {reason}", failed=True)]
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _median_ratio(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    return statistics.median([mine / yours for mine, yours in zip(ours, theirs)])


def alternate(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    repeats: int,
    apart: Callable[[], float] = float,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Time two actions in turns, after one untimed turn of each that fills caches.

    The garbage collector is on, as it is in programs, and starts from nothing; getting rid of a
    result is not timed. `apart` returns the seconds so far of work that is the same for both
    actions; the time of an action is without it.

    Returns:
      The seconds of each, ``repeats`` numbers.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for action, seconds in zip((ours, theirs), times):
            gc.collect()
            start = time.perf_counter() - apart()
            result = action()
            if turn:
                seconds.append(time.perf_counter() - apart() - start)
            del result
    return tuple(times[0]), tuple(times[1])


@dataclass(frozen=True)
class Usage:
    """The cost of a program.

    Attributes:
      seconds, cpu: on the clock; of the processor, user and system.
      peak: bytes of its largest process.
      output: the beginning of what it printed.
    """

    seconds: float
    cpu: float
    peak: int
    output: str = ""


def measured(
    command: Sequence[str], environment: Mapping[str, str], accepted: Collection[int] = (0,)
) -> Usage:
    """Run a program.

    Raises:
      Refused: its exit code is not one of ``accepted``, or it is not 0 and the program printed an
        error.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed = [_text(out, 0), _text(err, max(0, os.fstat(err.fileno()).st_size - _READ))]
    if process.returncode:
        reason = refusal(*printed)
        if reason or process.returncode not in accepted:
            raise Refused(reason or f"exit {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Usage(seconds, usage.ru_utime + usage.ru_stime, peak, printed[0])


def _text(file: Any, position: int) -> str:
    file.seek(position)
    return str(file.read(_READ).decode("utf-8", "replace"))


def refusal(output: str, errors: str) -> str:
    """Return the error that a program printed, without folders; an empty text if it printed
    none.
    """
    found = re.findall(r"(?m)^(?:[\w.]+\.)?(\w+Error\b.*)", errors) or re.findall(
        r"(?m)^ *error +(.*)", output
    )
    return re.sub(r"(?<!\S)/\S*/", "", found[-1].strip()) if found else ""
