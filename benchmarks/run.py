"""Run all benchmarks and write tables: ``python -m benchmarks.run [--only NAME] [--repeats N]
[--out FOLDER] [--record] [--no-run]``.

Writes ``benchmarks.json``, ``benchmarks.md`` and the plots, and prints the tables. ``--record``
puts the rows into the record of the documentation, in place of those of the same benchmarks, and
writes the page and the plots from it; with ``--no-run`` nothing is measured for that. Exits with 1
when a goal is missed or a row could not be measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import pkgutil
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks import attempt, page, plot, record, tensorflow_version
from benchmarks.growth import Point, curves
from benchmarks.record import Measurement, Row
from benchmarks.tables import markdown
from savedmodel_common.writing import write_text

_PARTS = ("models", "page", "plot", "record", "run", "tables")  # modules that measure nothing


def names() -> list[str]:
    """Return the benchmarks there are."""
    return sorted(
        item.name for item in pkgutil.iter_modules(benchmarks.__path__) if item.name not in _PARTS
    )


def rows_of(name: str, repeats: int) -> list[Row]:
    """Run one benchmark in a fresh process.

    A benchmark that fails is a row that says why; so is one that ends its process.

    A process that has loaded models would lend its peak memory to those that it starts.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return attempt(name, process.submit(_rows, name, repeats).result)


def _rows(name: str, repeats: int) -> list[Row]:
    return list(importlib.import_module(f"benchmarks.{name}").run(repeats))


def _machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "protobuf"))
    versions = f"TensorFlow {tensorflow_version()}, {versions}"
    return (
        f"{versions}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()}"
        " cores."
    )


def as_json(rows: Sequence[Row]) -> str:
    """Return the results with every single time."""
    items = list(map(_item, rows))
    return json.dumps({"schema": 2, "machine": _machine(), "rows": items}, indent=2) + "\n"


def _item(row: Row) -> dict[str, Any]:
    computed = ("ratio", "cpu_ratio", "rate", "reached")
    known = {name: getattr(row, name) for name in computed if hasattr(row, name)}
    return {"kind": type(row).__name__, **vars(row), **known}


def plots(rows: Sequence[Row]) -> dict[str, str]:
    """Return the plots of growth: name of the file -> SVG."""
    by_command: dict[str, dict[str, Sequence[Point]]] = {}
    for (command, kind), line in curves([row for row in rows if isinstance(row, Point)]).items():
        by_command.setdefault(command, {})[kind] = line
    return {
        f"growth-{command}.svg": plot.svg(command, lines) for command, lines in by_command.items()
    }


def main() -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Ratios of wall times, ours to TensorFlow's."
    )
    parser.add_argument(
        "--only", action="append", choices=names(), help="run only this benchmark; may be repeated"
    )
    parser.add_argument("--repeats", type=int, default=7, help="pairs of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmark-out"))
    parser.add_argument(
        "--record", action="store_true", help="put the rows into the record, and write the page"
    )
    parser.add_argument(
        "--no-run", action="store_true", help="measure nothing, write the page from the record"
    )
    options = parser.parse_args()
    if options.no_run:
        page.write(record.read())
        return 0
    measurements = []
    for name in [name for name in names() if name in (options.only or names())]:
        start = time.monotonic()
        rows = tuple(rows_of(name, options.repeats))
        today = datetime.now(timezone.utc).date().isoformat()
        measurements.append(Measurement(name, today, _machine(), rows))
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    found = record.rows(measurements)
    text = markdown(found, _machine())
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "benchmarks.json", as_json(found))
    write_text(options.out / "benchmarks.md", text)
    for folder in [options.out, *([page.PAGE.parent] if options.record else [])]:
        for file, drawing in plots(found).items():
            write_text(folder / file, drawing)
    if options.record:
        all_of_them = record.merged(record.read(), measurements)
        record.write(all_of_them)
        page.write(all_of_them)
    sys.stdout.write(text)
    return 0 if all(getattr(row, "reached", True) for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
