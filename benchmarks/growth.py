"""How time and memory grow with a model: programs of ours on models of 100 to 100,000 nodes,
functions, variables, children, assets, signatures and tags.

Each program is a process of its own; its seconds of the processor and its memory are measured. Two
kinds of models are measured at a time.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from benchmarks import Refused, environment, measured
from benchmarks.models import growing
from reference_impl.format import limits

SIZES = (100, 1_000, 10_000, 100_000)
LARGEST = 1_000_000  # nodes, for `inspect`
LINEAR = 13.0  # for ten times the size
LIMIT = 120.0  # seconds for one program

# The largest models of a kind that the limits allow. A save adds a signature for initialisers. A
# model has a few files beside its assets.
MOST = {"signatures": limits.SIGNATURES - 1, "assets": limits.DIRECTORY_ENTRIES - 10}
_AT_ONCE = 2  # kinds
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
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            measured_kinds = threads.map(
                lambda kind: list(_points(kind, folder / kind, sizes_of(kind, sizes, largest))),
                growing.KINDS,
            )
            return list(itertools.chain.from_iterable(measured_kinds))
    finally:
        shutil.rmtree(folder)


def sizes_of(kind: str, sizes: Sequence[int], largest: int) -> list[int]:
    """Return the sizes of the models of a kind; the last of graphs is for `inspect` alone."""
    most = MOST.get(kind, max(sizes))
    further = [largest] if kind == "nodes" and largest > max(sizes) else []
    return [*dict.fromkeys(min(size, most) for size in sizes), *further]


def _points(kind: str, folder: Path, sizes: Sequence[int]) -> Iterator[Point]:
    ended: dict[str, str] = {}  # a command that did not end is not tried with a larger model
    folder.mkdir()
    for count in sizes:
        model, copy = folder / str(count), folder / f"{count}-copy"
        commands = _commands(kind, count, model, copy, folder / "out")
        try:
            _make(kind, count, model)
            shutil.copytree(model, copy)
        except Refused as error:
            reason = f"no model with {count:,} {kind}: {error}"
            ended = dict.fromkeys(commands, reason) | ended
        for command, words in commands.items():
            seconds, peak = 0.0, 0
            if command not in ended:
                try:
                    seconds, peak = _measured(words)
                except Refused as error:
                    ended[command] = f"{error} with {count:,} {kind}"
            yield Point(command, kind, count, seconds, peak, ended.get(command, ""))
            shutil.rmtree(folder / "out", ignore_errors=True)
        shutil.rmtree(model, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)


def _make(kind: str, count: int, model: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.models.growing", kind, str(count), str(model)]
    measured(command, environment())


def _commands(kind: str, count: int, model: Path, copy: Path, out: Path) -> dict[str, list[str]]:
    """Return the programs that a model is for.

    migrate copies a model of TF 2; most of the time is that of tf.saved_model.load, which proves
    it. A save writes one tag, whatever it has loaded.
    """
    program = [sys.executable, "-m", "savedmodel_compat"]
    commands = {"inspect": [*program, "inspect", str(model)]}
    if count > max(SIZES):
        return commands
    commands["verify"] = [*program, "verify", str(model)]
    commands["diff"] = [*program, "diff", str(model), str(copy)]
    commands["load"] = [sys.executable, "-c", _IN_PROCESS, str(model), "load"]
    if kind != "tags":
        commands["save"] = [sys.executable, "-c", _IN_PROCESS, str(model), "save", str(out)]
    if kind == "nodes":
        commands["migrate"] = [*program, "migrate", str(model), "--out", str(out), "--jobs", "1"]
    return commands


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
