"""The record of the benchmarks, ``docs/data/benchmarks.json``: the rows of the last measurement of
each benchmark, its date and its machine.

A run with ``--record`` replaces the rows of the benchmarks that it ran, and writes the page from
the whole record. The tables are built with the site (`docs.benchmark_tables`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, Union

from benchmarks import Comparison, Figure, NotMeasured, Summary
from benchmarks.growth import Point
from benchmarks.memory import Peak
from benchmarks.migrate import Rate
from savedmodel_common.writing import write_text

FILE = Path(__file__).parents[1] / "docs/data/benchmarks.json"
SCHEMA = 1
Row = Union[Comparison, Summary, Figure, NotMeasured, Peak, Rate, Point]
_CLASSES: dict[str, type] = {
    one.__name__: one for one in (Summary, Figure, NotMeasured, Peak, Rate, Point)
}


class Measurement(NamedTuple):
    """The last run of a benchmark.

    Attributes:
      benchmark: its module.
      measured: the date.
      machine: versions and cores.
      rows: its results; a comparison is its `Summary`.
    """

    benchmark: str
    measured: str
    machine: str
    rows: tuple[Row, ...]


def read(file: Path = FILE) -> list[Measurement]:
    """Return the measurements, in the order of the record."""
    entries = json.loads(file.read_text(encoding="utf-8"))["benchmarks"]
    return [
        Measurement(
            entry["benchmark"], entry["measured"], entry["machine"], tuple(map(_row, entry["rows"]))
        )
        for entry in entries
    ]


def write(measurements: Iterable[Measurement], file: Path = FILE) -> None:
    """Write the record, a line for each row."""
    parts = []
    for one in measurements:
        rows = ",\n".join(f"    {json.dumps(_entry(row))}" for row in one.rows)
        head = json.dumps(
            {"benchmark": one.benchmark, "measured": one.measured, "machine": one.machine}
        )
        parts.append(f'  {head[:-1]}, "rows": [\n{rows}\n  ]}}')
    text = f'{{"schema": {SCHEMA}, "benchmarks": [\n' + ",\n".join(parts) + "\n]}\n"
    write_text(file, text)


def merged(old: Sequence[Measurement], new: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements with newer ones in place of the same benchmarks' old ones."""
    newer = {one.benchmark: one for one in new}
    kept = [newer.pop(one.benchmark, one) for one in old]
    return [*kept, *newer.values()]


def rows(measurements: Iterable[Measurement]) -> list[Row]:
    """Return the rows of all measurements."""
    found: list[Row] = []
    for one in measurements:
        found += one.rows
    return found


def _entry(row: Row) -> dict[str, object]:
    kept = row.summary if isinstance(row, Comparison) else row
    return {"row": type(kept).__name__, **asdict(kept)}


def _row(entry: dict[str, object]) -> Row:
    fields = {name: value for name, value in entry.items() if name != "row"}
    row: Row = _CLASSES[str(entry["row"])](**fields)
    return row
