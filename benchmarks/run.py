"""Run all benchmarks and write a table: ``python -m benchmarks.run [--only NAME] [--repeats N] [--out FOLDER]``.

Writes ``benchmarks.json`` and ``benchmarks.md``, and prints the table. Exits with 1 when a ratio misses its goal.
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
from pathlib import Path

import benchmarks
from benchmarks import Comparison


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(item.name for item in pkgutil.iter_modules(benchmarks.__path__) if item.name not in ("run", "models"))


def markdown(found: list[Comparison]) -> str:
    """The results as a table, one line per comparison."""
    lines = ["| what | ours | theirs | ours s | theirs s | ratio | goal | |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for item in found:
        medians = [f"{statistics.median(seconds):.3f}" for seconds in (item.ours_seconds, item.theirs_seconds)]
        verdict = "ok" if item.reached else "MISSED"
        cells = [f"{item.name} ({item.notes})", item.ours, item.theirs, *medians, f"{item.ratio:.3f}", f"< {item.goal}", verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Seconds and ratio are medians. {_machine()}", ""])


def _machine() -> str:
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."


def as_json(found: list[Comparison]) -> str:
    """The results with every single time."""
    items = [{**vars(item), "ratio": item.ratio, "reached": item.reached} for item in found]
    return json.dumps({"schema": 1, "machine": _machine(), "comparisons": items}, indent=2) + "\n"


def main() -> int:
    """The command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Ratios of wall times, ours to TensorFlow's.")
    parser.add_argument("--only", action="append", choices=names(), help="run only this benchmark; may be repeated")
    parser.add_argument("--repeats", type=int, default=7, help="pairs of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmark-out"))
    options = parser.parse_args()
    found: list[Comparison] = []
    for name in options.only or names():
        found += importlib.import_module(f"benchmarks.{name}").run(options.repeats)
    options.out.mkdir(parents=True, exist_ok=True)
    for file, text in (("benchmarks.json", as_json(found)), ("benchmarks.md", markdown(found))):
        partial = options.out / f".{file}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(options.out / file)
    sys.stdout.write(markdown(found))
    return 0 if all(item.reached for item in found) else 1


if __name__ == "__main__":
    sys.exit(main())
