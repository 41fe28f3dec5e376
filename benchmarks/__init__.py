"""Ratio benchmarks: ours against what TensorFlow ships, alternating in one run, so that a busy machine slows both.

A benchmark is a module of this package with a function ``run(repeats) -> list[Comparison]``; `benchmarks.run` finds it. Two
are of other kinds: `benchmarks.memory` and `benchmarks.migrate`.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Optional


def tensorflow_version() -> str:
    """The version of the installed TensorFlow, which is not imported for it. Raises PackageNotFoundError: there is none."""
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
      goal: the median of the ratios ours / theirs should be below this.
      notes: sizes and versions.
      ours_cpu, theirs_cpu: seconds of the processor (user and system), where they were measured: whole programs.
    """

    name: str
    ours: str
    theirs: str
    ours_seconds: tuple[float, ...]
    theirs_seconds: tuple[float, ...]
    goal: float
    notes: str
    ours_cpu: tuple[float, ...] = ()
    theirs_cpu: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        return _median_ratio(self.ours_seconds, self.theirs_seconds)

    @property
    def cpu_ratio(self) -> Optional[float]:
        """The same of the processor's time, which a machine that is busy with other things changes less; None: not measured."""
        return _median_ratio(self.ours_cpu, self.theirs_cpu) if self.ours_cpu else None

    @property
    def reached(self) -> bool:
        return self.ratio < self.goal and (self.cpu_ratio is None or self.cpu_ratio < self.goal)


def _median_ratio(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    return statistics.median([mine / yours for mine, yours in zip(ours, theirs)])


def alternate(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Time two actions in turns, after one untimed turn of each that fills caches.

    The garbage collector is on, as it is in programs, and starts from nothing; getting rid of a result is not timed.

    Returns:
      The seconds of each, ``repeats`` numbers.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for action, seconds in zip((ours, theirs), times):
            gc.collect()
            start = time.perf_counter()
            result = action()
            if turn:
                seconds.append(time.perf_counter() - start)
            del result
    return tuple(times[0]), tuple(times[1])


@dataclass(frozen=True)
class Usage:
    """What a program took: seconds on the clock, of the processor (user and system), and the bytes of its largest process."""

    seconds: float
    cpu: float
    peak: int


def measured(command: Sequence[str], environment: Mapping[str, str], accepted: Collection[int] = (0,)) -> Usage:
    """Run a program without its output. Raises CalledProcessError: its exit code is not ``accepted``."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepted:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
