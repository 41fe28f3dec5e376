"""The results as Markdown: a table for each kind of row, the reasons of what misses its goal, and
the plots of growth.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Union

from benchmarks import Comparison, Figure, NotMeasured, memory, migrate
from benchmarks.growth import LINEAR, Point, curves, is_linear
from benchmarks.memory import Peak
from benchmarks.migrate import Rate
from savedmodel_common import toml

Row = Union[Comparison, Figure, NotMeasured, Peak, Rate, Point]
EXPLAINED = Path(__file__).with_name("explained.toml")


def markdown(rows: Sequence[Row], machine: str) -> str:
    """Return the page's generated part: tables, one line per row; then what explains the rows that
    miss; then the plots.
    """
    lines = [
        *_comparisons(_of(rows, Comparison)),
        *_figures(_of(rows, Figure)),
        *_peaks(_of(rows, Peak)),
        *_rates(_of(rows, Rate)),
    ]
    missing = _of(rows, NotMeasured)
    if missing:
        lines += ["", "Not measured:", "", *[f"* {item.name}: {item.reason}" for item in missing]]
    missed = [item for item in rows if not getattr(item, "reached", True)]
    lines += _explanations(
        dict.fromkeys(_title(item) for item in missed if not isinstance(item, NotMeasured))
    )
    lines += _growth(_of(rows, Point))
    return "\n".join([*lines, "", f"Seconds and ratios are medians of pairs. {machine}", ""])


def _of(rows: Iterable[Row], kind: type) -> list[Any]:
    return [row for row in rows if isinstance(row, kind)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    found = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}", *found] if found else []


def _verdict(item: Row) -> str:
    return "ok" if getattr(item, "reached", True) else "MISSED"


def _title(item: Row) -> str:
    return f"{item.name} ({item.notes})" if isinstance(item, Comparison) else item.name


def _comparisons(found: list[Comparison]) -> list[str]:
    def cells(item: Comparison) -> list[str]:
        medians = [
            f"{statistics.median(seconds):.3f}"
            for seconds in (item.ours_seconds, item.theirs_seconds)
        ]
        cpu = "" if item.cpu_ratio is None else f"{item.cpu_ratio:.3f}"
        goal = "" if item.goal is None else f"< {item.goal}"
        verdict = "" if item.goal is None else _verdict(item)
        return [
            _title(item),
            item.ours,
            item.theirs,
            *medians,
            f"{item.ratio:.3f}",
            cpu,
            goal,
            verdict,
        ]

    return _table(
        ("what", "ours", "theirs", "ours s", "theirs s", "ratio", "CPU ratio", "goal", ""),
        map(cells, found),
    )


def _figures(found: list[Figure]) -> list[str]:
    rows = [
        [item.name, f"{item.value:.3g} {item.unit}", f"< {item.goal:g} {item.unit}", _verdict(item)]
        for item in found
    ]
    return _table(("what", "ours", "goal", ""), rows)


def _peaks(found: list[Peak]) -> list[str]:
    goal = f"<= {memory.GOAL}, or {memory.SMALL >> 20} MiB"
    rows = [
        [
            item.name,
            *[f"{size / 2**20:.0f}" for size in (item.size, item.ours, item.theirs)],
            f"{item.ratio:.2f}",
            goal,
            _verdict(item),
        ]
        for item in found
    ]
    return _table(
        (
            "peak memory of a load",
            "files MiB",
            "ours MiB",
            "theirs MiB",
            "ours / files",
            "goal",
            "",
        ),
        rows,
    )


def _rates(found: list[Rate]) -> list[str]:
    rows = []
    for item in found:
        cells = [
            f"{item.seconds:.1f}",
            f"{item.rate:.1f}",
            f"{item.cpu / item.count:.2f}",
            f"{item.peak / 2**20:.0f}",
        ]
        rows.append([item.name, *cells, f">= {migrate.GOAL:g}", _verdict(item)])
    return _table(
        (
            "whole command",
            "seconds",
            "models a second",
            "CPU seconds a model",
            "largest process MiB",
            "goal",
            "",
        ),
        rows,
    )


def _explanations(
    missed: Collection[str], head: str = "Goals that are missed, from profiles:"
) -> list[str]:
    """Return a list of the rows that miss their goal, each with what `EXPLAINED` says of it."""
    if not missed:
        return []
    known = toml.read(EXPLAINED)["row"]
    lines = ["", head, ""]
    for name in missed:
        entry = max(
            (item for item in known if name.startswith(item["row"])),
            key=lambda item: len(item["row"]),
            default=None,
        )
        if entry is None:
            lines.append(f"* **{name}**: not explained yet.")
        else:
            floor = f" Measured floor: {entry['floor']}." if "floor" in entry else ""
            lines.append(f"* **{name}**: {entry['reason']}{floor}")
    return lines


def _growth(points: list[Point]) -> list[str]:
    if not points:
        return []
    sizes = sorted({point.count for point in points})
    rows = []
    for (command, kind), line in curves(points).items():
        there = {point.count: f"{point.seconds:.2f}" for point in line if not point.missing}
        why = next((point.missing for point in line if point.missing), "")
        cells = [there.get(size, "") for size in sizes]
        rows.append(
            [
                f"{command}, {kind}",
                *cells,
                "yes" if is_linear(line) else f"NO{': ' if why else ''}{why}",
            ]
        )
    plots = [
        f"![{command}: time and memory by size](growth-{command}.svg)"
        for command in dict.fromkeys(item.command for item in points)
    ]
    head = (
        f"CPU seconds by size. Linear: ten times the size takes at most {LINEAR:g} times as long,"
        " without the start."
    )
    table = _table(("command", *[f"{size:,}" for size in sizes], "linear"), rows)
    bent = [", ".join(key) for key, line in curves(points).items() if not is_linear(line)]
    return [
        "",
        head,
        *table,
        *_explanations(bent, "Growth that is not linear, or was not measured to the end:"),
        "",
        *plots,
    ]
