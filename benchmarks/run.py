"""Run all benchmarks and write tables: ``python -m benchmarks.run [--only NAME] [--repeats N] [--out FOLDER] [--page FILE]``.

Writes ``benchmarks.json`` and ``benchmarks.md``, and prints the tables; with ``--page`` they replace those of a page of the
documentation. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import statistics
import sys
from importlib import metadata
from pathlib import Path
from typing import Union

import benchmarks
from benchmarks import Comparison, memory, migrate, tensorflow_version
from benchmarks.memory import Peak
from benchmarks.migrate import Rate
from compat_matrix.common.writing import write_text

BEGIN, END = "<!-- Begin: python -m benchmarks.run --page docs/benchmarks.md -->", "<!-- End -->"


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(item.name for item in pkgutil.iter_modules(benchmarks.__path__) if item.name not in ("run", "models"))


def markdown(found: list[Comparison], peaks: list[Peak], rates: list[Rate]) -> str:
    """The results as tables, one line per comparison."""
    lines = []
    if found:
        lines += [
            "| what | ours | theirs | ours s | theirs s | ratio | CPU ratio | goal | |",
            f"|{' --- |' * 9}",
        ]
    for item in found:
        medians = [f"{statistics.median(seconds):.3f}" for seconds in (item.ours_seconds, item.theirs_seconds)]
        cpu = "" if item.cpu_ratio is None else f"{item.cpu_ratio:.3f}"
        cells = [f"{item.name} ({item.notes})", item.ours, item.theirs, *medians, f"{item.ratio:.3f}", cpu, f"< {item.goal}"]
        lines.append(f"| {' | '.join([*cells, _verdict(item)])} |")
    if peaks:
        lines += ["", "| peak memory of a load | files MiB | ours MiB | theirs MiB | ours / files | goal | |"]
        lines += [f"|{' --- |' * 7}"]
    for peak in peaks:
        cells = [f"{size / 2**20:.0f}" for size in (peak.size, peak.ours, peak.theirs)]
        lines.append(f"| {' | '.join([peak.name, *cells, f'{peak.ratio:.2f}', f'<= {memory.GOAL}', _verdict(peak)])} |")
    if rates:
        lines += ["", "| whole command | seconds | models a second | CPU seconds a model | largest process MiB | goal | |"]
        lines += [f"|{' --- |' * 7}"]
    for rate in rates:
        cells = [f"{rate.seconds:.1f}", f"{rate.rate:.1f}", f"{rate.cpu / rate.count:.2f}", f"{rate.peak / 2**20:.0f}"]
        lines.append(f"| {' | '.join([rate.name, *cells, f'>= {migrate.GOAL:g}', _verdict(rate)])} |")
    return "\n".join([*lines, "", f"Seconds and ratios are medians of pairs. {_machine()}", ""])


def _verdict(item: Union[Comparison, Peak, Rate]) -> str:
    return "ok" if item.reached else "MISSED"


def _machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "protobuf"))
    versions = f"TensorFlow {tensorflow_version()}, {versions}"
    return f"{versions}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."


def as_json(found: list[Comparison], peaks: list[Peak], rates: list[Rate]) -> str:
    """The results with every single time."""
    items = [{**vars(item), "ratio": item.ratio, "cpu_ratio": item.cpu_ratio, "reached": item.reached} for item in found]
    loads = [{**vars(peak), "ratio": peak.ratio, "reached": peak.reached} for peak in peaks]
    zoos = [{**vars(rate), "rate": rate.rate, "reached": rate.reached} for rate in rates]
    return json.dumps({"schema": 1, "machine": _machine(), "comparisons": items, "memory": loads, "rates": zoos}, indent=2) + "\n"


def replaced(page: str, tables: str) -> str:
    """The text of a page with other tables. Raises ValueError: it has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{tables}\n{end}{after}"


def main() -> int:
    """The command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Ratios of wall times, ours to TensorFlow's.")
    parser.add_argument("--only", action="append", choices=names(), help="run only this benchmark; may be repeated")
    parser.add_argument("--repeats", type=int, default=7, help="pairs of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmark-out"))
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced by the new ones")
    options = parser.parse_args()
    wanted = options.only or names()
    # First: a process that is started has as its peak what the one that starts it is using.
    peaks = memory.run() if "memory" in wanted else []
    rates = migrate.run() if "migrate" in wanted else []
    found: list[Comparison] = []
    for name in wanted:
        if name not in ("memory", "migrate"):
            found += importlib.import_module(f"benchmarks.{name}").run(options.repeats)
    options.out.mkdir(parents=True, exist_ok=True)
    text = markdown(found, peaks, rates)
    write_text(options.out / "benchmarks.json", as_json(found, peaks, rates))
    write_text(options.out / "benchmarks.md", text)
    if options.page is not None:
        write_text(options.page, replaced(options.page.read_text(encoding="utf-8"), text))
    sys.stdout.write(text)
    return 0 if all(item.reached for item in (*found, *peaks, *rates)) else 1


if __name__ == "__main__":
    sys.exit(main())
