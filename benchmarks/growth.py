"""How time and memory grow with a model: programs of ours on models of 100 to 100,000 nodes,
functions and variables.

Each program is a process of its own; its seconds of the processor and its memory are measured.
`python -m benchmarks.run --page` draws a plot for each (``docs/growth-NAME.svg``). Growth is linear
if ten times the size takes at most `LINEAR` times as long, once the time for the smallest model,
which is that for starting, is taken off.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from benchmarks import Refused, environment, measured
from benchmarks.models import growing

SIZES = (100, 1_000, 10_000, 100_000)
LARGEST = 1_000_000  # nodes, for `inspect`
LINEAR = 13.0  # for ten times the size
LIMIT = 120.0  # seconds for one program
_SMALL = 0.3  # seconds beyond the start: below this, growth says nothing

_IN_PROCESS = """
import json, resource, sys, time
import tensorflow as tf
import reference_impl
tf.Variable(0.0).assign_add(1.0)
def used():
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
found = [used()]
loaded = reference_impl.load(sys.argv[1])
found.append(used())
if sys.argv[2] == "save":
    reference_impl.save(loaded, sys.argv[3], options=reference_impl.SaveOptions(sync=False))
    found.append(used())
(first, _), (last, peak) = found[-2:]
print(json.dumps([last - first, peak - found[0][1]]))
"""  # noqa: E501


@dataclass(frozen=True)
class Point:
    """One program on one model: ``seconds`` of the processor and ``peak`` bytes, or in ``missing``
    why there are none.
    """

    command: str
    kind: str
    count: int
    seconds: float = 0.0
    peak: int = 0
    missing: str = ""


def run(repeats: int = 1, sizes: Sequence[int] = SIZES, largest: int = LARGEST) -> list[Point]:
    """Measure all programs.

    Each runs once, whatever ``repeats`` is: a plot shows by itself what does not fit.
    """
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        return list(_points(folder, sizes, largest))
    finally:
        shutil.rmtree(folder)


def _points(folder: Path, sizes: Sequence[int], largest: int) -> Iterator[Point]:
    ended: dict[
        tuple[str, str], str
    ] = {}  # a command that did not end with a size is not tried with a larger one
    for kind in growing.KINDS:
        for count in [*sizes, *([largest] if kind == "nodes" and largest > max(sizes) else [])]:
            model, copy = folder / f"{kind}-{count}", folder / f"{kind}-{count}-copy"
            commands = _commands(model, copy, folder / "out")
            try:
                _make(kind, count, model)
                shutil.copytree(model, copy)
            except Refused as error:
                ended |= {
                    (command, kind): f"no model with {count:,} {kind}: {error}"
                    for command in commands
                } | ended
            for command, words in commands.items():
                if (count > max(sizes) and command != "inspect") or (
                    command == "migrate" and kind != "nodes"
                ):
                    # migrate copies a model of TF 2; most of the time is that of
                    # tf.saved_model.load, which proves it
                    continue
                if (command, kind) in ended:
                    yield Point(command, kind, count, missing=ended[command, kind])
                    continue
                try:
                    yield Point(command, kind, count, *_measured(words))
                except Refused as error:
                    ended[command, kind] = f"{error} with {count:,} {kind}"
                    yield Point(command, kind, count, missing=ended[command, kind])
                shutil.rmtree(folder / "out", ignore_errors=True)
            shutil.rmtree(model, ignore_errors=True)
            shutil.rmtree(copy, ignore_errors=True)


def _make(kind: str, count: int, model: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.models.growing", kind, str(count), str(model)]
    measured(command, environment())


def _commands(model: Path, copy: Path, out: Path) -> dict[str, list[str]]:
    program = [sys.executable, "-m", "savedmodel_compat"]
    return {
        "inspect": [*program, "inspect", str(model)],
        "verify": [*program, "verify", str(model)],
        "diff": [*program, "diff", str(model), str(copy)],
        "load": [sys.executable, "-c", _IN_PROCESS, str(model), "load"],
        "save": [sys.executable, "-c", _IN_PROCESS, str(model), "save", str(out)],
        "migrate": [*program, "migrate", str(model), "--out", str(out), "--jobs", "1"],
    }


def _measured(words: list[str]) -> tuple[float, int]:
    """Return the CPU seconds and the peak.

    Raises Refused: the model was refused, or the program took longer than `LIMIT`.
    """
    limit = ["timeout", str(LIMIT)] if shutil.which("timeout") else []
    try:
        usage = measured([*limit, *words], environment())
    except Refused as error:
        ended = limit and str(error) == "exit 124"  # of `timeout`
        raise Refused(f"more than {LIMIT:g} s" if ended else f"refused: {error}") from None
    if words[1] == "-c":  # the work alone; the import of TensorFlow is not ours
        seconds, peak = json.loads(usage.output)
        return seconds, peak
    return usage.cpu, usage.peak


def curves(points: Iterable[Point]) -> dict[tuple[str, str], list[Point]]:
    """Return the points of each command and kind, by size."""
    found: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        found.setdefault((point.command, point.kind), []).append(point)
    return {key: sorted(line, key=lambda point: point.count) for key, line in found.items()}


def worst_step(line: Sequence[Point]) -> Optional[float]:
    """Return by how much more than the size the time grows, at most, for ten times the size; None
    if all of it is too short.
    """
    there = [point for point in line if not point.missing]
    base = there[0].seconds if there else 0.0
    steps = []
    for one, other in (
        itertools.pairwise(there) if sys.version_info >= (3, 10) else zip(there, there[1:])
    ):
        before, after = one.seconds - base, other.seconds - base
        if before >= _SMALL:
            steps.append((after / before) / (other.count / one.count) * 10)
    return max(steps, default=None)


def is_linear(line: Sequence[Point]) -> bool:
    """Return whether every size was measured and ten times the size takes at most `LINEAR` times as
    long.
    """
    step = worst_step(line)
    return not any(point.missing for point in line) and (step is None or step <= LINEAR)
