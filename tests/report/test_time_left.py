"""The time that is left, on the record of a real run (tests/data/run_seconds), with simulated
clocks.
"""

from __future__ import annotations

import gzip
import heapq
import io
import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from compat_matrix.cells.plan import NO_CONSUMER, PRODUCE, Cell
from compat_matrix.report import progress as progress_module
from compat_matrix.report.cell_costs import CellCosts, recorded
from compat_matrix.report.progress import Progress
from compat_matrix.report.time_left import TimeLeft
from docs import cell_costs

RECORD = json.loads(
    gzip.decompress(
        (Path(__file__).parents[1] / "data" / "run_seconds" / "cells.json.gz").read_bytes()
    )
)
PROCESSES = RECORD["processes"]
START = 8.0  # seconds in which a process starts TensorFlow
PER_CELL = 0.0027  # seconds that pytest and the transport need for each cell
WITHIN = 1.5


def artifacts():
    """Return the cells of each artifact with their seconds, those of most cells first, as
    pytest-xdist sends them.
    """
    found = []
    for case, producer, version, pairs in RECORD["seconds"]:
        cells = []
        for name, milliseconds in zip(pairs[::2], pairs[1::2]):
            consumer, check = name.rsplit("/", 1)
            reader = ("", "") if check == PRODUCE else ("2.21.0", "local")
            cell = Cell(
                case,
                producer,
                version,
                consumer,
                reader[0],
                check,
                reader[1] or "local",
                "artifacts/x",
            )
            assert (cell.consumer == NO_CONSUMER) is cell.is_production
            cells.append((cell, milliseconds / 1000 + PER_CELL))
        found.append(cells)
    return sorted(found, key=lambda cells: -len(cells))


@dataclass
class Simulated:
    """A run: when each cell ended, and when the run ended."""

    ended: list[tuple[float, Cell]]
    wall: float


def simulated(slower, processes=PROCESSES, noise=0.0, seed=0):
    """Run the record on a machine that is ``slower`` times as slow; the artifacts take longer or
    shorter by a random factor.
    """
    chance = random.Random(seed)
    free = [START * slower] * processes
    ended = []
    for cells in artifacts():
        now, factor = heapq.heappop(free), slower * chance.lognormvariate(0, noise)
        for cell, seconds in cells:
            now += seconds * factor
            ended.append((now, cell))
        heapq.heappush(free, now)
    return Simulated(sorted(ended, key=lambda item: item[0]), max(free))


def test_the_simulation_is_the_recorded_run():
    assert simulated(1).wall == pytest.approx(RECORD["wall"], rel=0.05)


def worst(run, costs, processes=PROCESSES):
    """Return the largest factor between estimate and truth, after the first minute until a fifth of
    the run is left.

    At the end one process may be busy with the last model while the others wait: the error is
    small, its factor is not.
    """
    left = TimeLeft(costs, [cell for _, cell in run.ended], processes)
    factors = []
    for when, cell in run.ended:
        left.finished(cell)
        if 60 <= when < 0.8 * run.wall:
            estimate, truth = left.seconds(when), run.wall - when
            factors.append(max(estimate / truth, truth / estimate))
    assert len(factors) > 3000
    return max(factors)


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("slower", [1, 4])
def test_after_the_first_minute_the_estimate_is_close(slower, processes):
    assert worst(simulated(slower, processes), recorded(), processes) < WITHIN


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slower", [1, 4])
def test_it_is_close_on_a_machine_on_which_models_take_another_time(slower, seed):
    assert worst(simulated(slower, noise=0.4, seed=seed), recorded()) < WITHIN


def test_the_number_of_cells_alone_would_not_do():
    """What was printed before: the rate so far, for all cells that are left."""
    equal = CellCosts(0.0, 1.0, {}, {})
    assert worst(simulated(4), equal) > WITHIN


def test_kinds_of_cells_have_costs_of_their_own():
    heavy, light = (
        Cell("mine", "tf2", "2", *words, "local", "x")
        for words in (("tf2", "2", "reexport"), ("cpp", "2", "load"))
    )
    assert recorded().of(heavy) > 10 * recorded().of(light) > 0


def test_cells_that_nobody_measured_cost_the_mean():
    cell = Cell("mine", "given", "1", "theirs", "1", "values", "local", "x")
    assert recorded().of(cell) == recorded().usual > 0


def test_nothing_is_said_in_the_first_minute_nor_before_a_cell_has_ended():
    cell = Cell("mine", "given", "1", "theirs", "1", "values", "local", "x")
    left = TimeLeft(recorded(), [cell] * 2)
    assert left.seconds(100) is None
    left.finished(cell)
    assert left.seconds(59.9) is None and left.seconds(60) > 0
    left.finished(cell)
    assert left.seconds(100) == 0


def test_a_run_prints_it(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=200, highlight=False)
    progress, run = Progress("cells", "unexpected", console), simulated(4)
    progress.start(len(run.ended), TimeLeft(recorded(), [cell for _, cell in run.ended], PROCESSES))
    for when, cell in run.ended:
        now[0] = when
        progress.advance(cell=cell)
    lines = console.file.getvalue().splitlines()
    first = next(i for i, line in enumerate(lines) if "left" in line)
    assert (
        len(lines) > 100 and 1 < first < 6
    )  # a line each ten seconds, after a start of half a minute
    assert any(f"{minutes} min left" in lines[first] for minutes in range(23, 40))  # of 31
    assert lines[-1].endswith(" 0 s left")


def test_the_file_is_what_its_command_writes(tmp_path):
    seconds = [pair for cells in artifacts() for pair in cells]
    made = cell_costs.costs(
        [(cell, one - PER_CELL) for cell, one in seconds], 7.9, RECORD["wall"], PROCESSES
    )
    kept = json.loads(cell_costs.COSTS_FILE.read_text())
    assert made["kinds"].keys() == kept["kinds"].keys() and made["cells"] == kept["cells"]
    assert {kind: round(cost, 2) for kind, cost in made["kinds"].items()} == pytest.approx(
        kept["kinds"], abs=0.01
    )
    heavy = {case for case, factor in kept["cases"].items() if factor > 3}
    assert heavy and all(
        made["cases"][case] == pytest.approx(kept["cases"][case], rel=0.1) for case in heavy
    )
