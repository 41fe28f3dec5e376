"""The results as Markdown: a table for each kind of row, the reasons of the missed goals, and the
plots of growth; and the summary on the page of the benchmarks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import Comparison, Figure, NotMeasured, Summary, memory, migrate
from benchmarks.growth import LINEAR, Point, curves, is_linear
from benchmarks.memory import Peak
from benchmarks.migrate import Rate
from benchmarks.record import Measurement, Row
from benchmarks.record import rows as rows_of
from savedmodel_common import toml

EXPLAINED = Path(__file__).with_name("explained.toml")
_MISSED = "Goals that are missed, from profiles:"
_BENT = "Growth that is not linear, or was not measured to the end:"


def markdown(rows: Sequence[Row], machine: str) -> str:
    """Return the results of a run: tables, one line per row; then the reasons of the rows that miss
    their goal; then the plots.
    """
    lines = [*_tables(rows), *_explanations(_missed(rows), _MISSED), *_growth(_of(rows, Point))]
    return "\n".join([*lines, "", f"Seconds and ratios are medians of pairs. {machine}", ""])


def site_page(measurements: Sequence[Measurement]) -> str:
    """Return the page of all tables, which is built with the site."""
    dates = [f"* {one.benchmark}: {one.measured}, {one.machine}" for one in measurements]
    rows = rows_of(measurements)
    lines = [
        "# The tables of the benchmarks",
        "",
        "[Benchmarks](benchmarks.md) says what is measured and why a row misses its goal. Seconds"
        " and ratios are medians of pairs.",
        *_tables(rows),
        *_growth_table(_of(rows, Point)),
        "",
        "Measured:",
        "",
        *dates,
    ]
    return "\n".join([*lines, ""])


def summary(measurements: Sequence[Measurement]) -> str:
    """Return the generated part of the page of the benchmarks: a line for each kind of row, each
    reason once, and the plots.
    """
    rows = rows_of(measurements)
    points = _of(rows, Point)
    lines = [
        *_groups(rows),
        *_not_measured(rows),
        *_explanations(_missed(rows), _MISSED),
        *_explanations(_bent(points), _BENT),
        "",
        *_plots(points),
        "",
    ]
    return "\n".join(lines)


def _tables(rows: Sequence[Row]) -> list[str]:
    found = [
        item.summary if isinstance(item, Comparison) else item
        for item in rows
        if isinstance(item, (Comparison, Summary))
    ]
    return [
        *_comparisons(found),
        *_figures(_of(rows, Figure)),
        *_peaks(_of(rows, Peak)),
        *_rates(_of(rows, Rate)),
        *_not_measured(rows),
    ]


def _not_measured(rows: Sequence[Row]) -> list[str]:
    missing = _of(rows, NotMeasured)
    items = [f"* {item.name}: {item.reason}" for item in missing]
    return ["", "Not measured:", "", *items] if items else []


def _missed(rows: Sequence[Row]) -> list[str]:
    """Return the titles of the rows that miss their goal."""
    return [
        _title(item)
        for item in rows
        if not isinstance(item, NotMeasured) and not getattr(item, "reached", True)
    ]


def _groups(rows: Sequence[Row]) -> list[str]:
    """Return a table with a line for each kind of row and goal."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for item in rows:
        if not isinstance(item, (NotMeasured, Point)):
            groups.setdefault(_group(item)[:4], []).append(item)
    lines = []
    for (kind, theirs, unit, goal), found in groups.items():
        values = sorted(_group(item)[4] for item in found)
        shown = dict.fromkeys(f"{value:.3g}" for value in (values[0], values[-1]))
        good = sum(getattr(item, "reached", True) for item in found)
        lines.append(
            [
                found[0].name if len(found) == 1 else f"{kind}, {len(found)} rows",
                theirs,
                f"{' to '.join(shown)}{unit}",
                goal,
                f"{good} of {len(found)}" if goal else "",
            ]
        )
    return _table(("what", "beside", "ours", "goal", "reached"), lines)


def _group(item: Row) -> tuple[str, str, str, str, float]:
    """Return the kind of a row, the other program, the unit, the goal, and its value."""
    if isinstance(item, (Comparison, Summary)):
        goal = "" if item.goal is None else f"< {item.goal}"
        return item.name.split(":")[0], item.theirs, " of its time", goal, item.ratio
    if isinstance(item, Peak):
        goal = f"<= {memory.GOAL}, or {memory.SMALL >> 20} MiB"
        return "peak memory of a load", "", " of the files", goal, item.ratio
    if isinstance(item, Rate):
        return item.name, "", " models a second", f">= {migrate.GOAL:g}", item.rate
    assert isinstance(item, Figure)
    return item.name, "", f" {item.unit}", f"< {item.goal:g}", item.value


def _of(rows: Iterable[Row], kind: type) -> list[Any]:
    return [row for row in rows if isinstance(row, kind)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    found = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}", *found] if found else []


def _verdict(item: Row) -> str:
    return "ok" if getattr(item, "reached", True) else "MISSED"


def _title(item: Row) -> str:
    if isinstance(item, (Comparison, Summary)):
        return f"{item.name} ({item.notes})"
    return str(getattr(item, "name", ""))


def _comparisons(found: list[Summary]) -> list[str]:
    def cells(item: Summary) -> list[str]:
        medians = [f"{seconds:.3f}" for seconds in (item.ours_seconds, item.theirs_seconds)]
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
    rows = []
    for item in found:
        sizes = [f"{size / 2**20:.0f}" for size in (item.size, item.ours, item.theirs)]
        rows.append([item.name, *sizes, f"{item.ratio:.2f}", goal, _verdict(item)])
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


def _explanations(missed: Collection[str], head: str) -> list[str]:
    """Return a list of the reasons in `EXPLAINED`, each once, with the rows that it explains."""
    known = toml.read(EXPLAINED)["row"]
    explained: dict[str, list[str]] = {}
    for name in dict.fromkeys(missed):
        entry = max(
            (item for item in known if name.startswith(item["row"])),
            key=lambda item: len(item["row"]),
            default=None,
        )
        floor = f" Measured floor: {entry['floor']}." if entry and "floor" in entry else ""
        reason = f"{entry['reason']}{floor}" if entry else "not explained yet."
        explained.setdefault(reason, []).append(name)
    lines = [f"* **{_common(names)}**: {reason}" for reason, names in explained.items()]
    return ["", head, "", *lines] if lines else []


def _common(names: Sequence[str]) -> str:
    """Return the name of a row, or the kind of several rows and how many they are."""
    first = names[0]
    return first if len(names) == 1 else f"{first.split(' (')[0]} ({len(names)} models)"


def _growth(points: list[Point]) -> list[str]:
    if not points:
        return []
    return [
        *_growth_table(points),
        *_explanations(_bent(points), _BENT),
        "",
        *_plots(points),
    ]


def _bent(points: Iterable[Point]) -> list[str]:
    return [", ".join(key) for key, line in curves(points).items() if not is_linear(line)]


def _plots(points: Iterable[Point]) -> list[str]:
    commands = dict.fromkeys(item.command for item in points)
    return [f"![{name}: time and memory by size](growth-{name}.svg)" for name in commands]


def _growth_table(points: list[Point]) -> list[str]:
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
    head = (
        f"CPU seconds by size. Linear: ten times the size takes at most {LINEAR:g} times as long,"
        " without the start."
    )
    return [
        "",
        head,
        *_table(("command", *[f"{size:,}" for size in sizes], "linear"), rows),
    ]
