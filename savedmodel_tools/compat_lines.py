"""The text of `compat`: tables of releases by loader, reasons, advice.

Nothing here prints; each function returns text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from savedmodel_common.printable import counted, printable
from savedmodel_tools.compat import LOADERS, GraphCompat, Use
from savedmodel_tools.needs_text import SHOWN_REASONS, head
from savedmodel_tools.skew.advice import words
from savedmodel_tools.skew.history import History

SHOWN_PARTS = 12


def csv_text(rows: list[list[str]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([printable(field, newlines=False) for field in row])
    return text.getvalue()


def table_lines(rows: list[list[str]]) -> Iterator[str]:
    """Yield the rows of a table, its columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths))
        yield printable(line.rstrip(), newlines=False)


def advice(
    rewritable: list[str],
    loaders: tuple[str, ...],
    stopped: list[str],
    index: int,
    sound: dict[str, set[int]],
    table: History,
) -> str:
    """Return what `downgrade` can do for the loaders that the model stops, or which releases load
    it if no newer one does.
    """
    release = table.releases[index].name
    fit = [loader for loader in loaders if loader in rewritable]
    helped = [loader for loader in fit if loader in stopped]
    if helped:
        which = "" if len(fit) == len(LOADERS) else "".join(f" --for {loader}" for loader in fit)
        return (
            f"downgrade --target {release}{which} rewrites it for {', '.join(helped)}, and"
            " proves it"
        )
    there = sorted(set.intersection(*(sound[loader] for loader in stopped)))
    if any(other > index for other in there):
        return f"downgrade cannot rewrite it for {release}"
    if there:
        return (
            f"only older releases load all of it for {', '.join(stopped)}:"
            f" {words(table.text(there))}"
        )
    return f"no release loads all of it for {', '.join(stopped)}"


def summary_line(lines: list[dict[str, Any]], releases: list[str], all_asked: bool) -> str:
    """How many of the models are well."""
    failed = sum("error" in line for line in lines)
    good = sum(line.get("ok", False) for line in lines)
    where = (
        f"in {releases[0]}"
        if len(releases) == 1
        else "in every release asked about"
        if all_asked
        else "in some release"
    )
    unreadable = f", {failed} cannot be read" if failed else ""
    return f"{good} of {counted(len(lines), 'model')} load {where} with all parts{unreadable}"


def model_lines(
    name: str, graphs: list[GraphCompat], loaders: tuple[str, ...], table: History, full: bool
) -> Iterator[str]:
    """Yield the lines of one model: its MetaGraphs, their parts, and what other releases lack."""
    yield printable(name, newlines=False)
    for graph in graphs:
        yield f"  {head(graph)}"
        for line in _part_lines(graph, loaders, table, full):
            yield f"    {line}"


def _part_lines(
    graph: GraphCompat, loaders: tuple[str, ...], table: History, full: bool
) -> Iterator[str]:
    uses = [use for use in graph.uses if use.loader in loaders]
    parts: dict[str, dict[str, Use]] = {}
    for use in uses:
        parts.setdefault(use.part, {})[use.loader] = use
    shown = list(parts) if full else list(parts)[:SHOWN_PARTS]
    rows = [["", *loaders]]
    for part in shown:
        by_loader = parts[part]
        rows.append([part, *[cell(by_loader.get(name), table) for name in loaders]])
    yield from table_lines(rows)
    if len(shown) < len(parts):
        yield f"{len(parts) - len(shown)} more parts: --full"
    for line in (*unknown_lines(uses), *reason_lines(uses, table, full)):
        yield printable(line, newlines=False)


def cell(use: Use | None, table: History) -> str:
    """Return the releases in which a part loads through one loader, for a table."""
    if use is None:
        return ""
    if not use.verdicts:
        return "(no such loader)"
    if use.unknown and use.members:
        refused = [index for index in use.verdicts if use.refused and index not in use.members]
        return f"unknown; not in {words(table.text(refused))}" if refused else "unknown"
    if len(use.verdicts) == 1:
        return "yes" if use.members else "no"
    if len(use.members) == len(use.verdicts):
        return "every release"
    return words(table.text(use.members)) if use.members else "none"


def unknown_lines(uses: list[Use]) -> list[str]:
    """Return the reasons why it is unknown which releases load a part."""
    lines: dict[str, dict[str, None]] = {}
    for use in uses:
        for why in use.unknown if use.members else ():
            lines.setdefault(why, {})[use.loader] = None
    return [f"unknown: {why}  ({', '.join(loaders)})" for why, loaders in lines.items()]


def reason_lines(uses: list[Use], table: History, full: bool) -> list[str]:
    """Return what the releases next to those that load it lack, or what the newest lacks; then what
    is lost silently.
    """
    lines: dict[tuple[int, str], dict[str, None]] = {}
    for use in uses:
        members, asked = set(use.members), sorted(use.verdicts)
        edges = [
            at
            for place, at in enumerate(asked)
            if at not in members and members & set(asked[max(place - 1, 0) : place + 2])
        ]
        for index in edges if members else asked[-1:]:
            for reason in use.verdicts[index].reasons:
                lines.setdefault((index, reason), {})[use.loader] = None
        for index in [index for index in asked if use.verdicts[index].risks][-1:]:
            for risk in use.verdicts[index].risks:
                lines.setdefault((index, f"loads, but {risk}"), {})[use.loader] = None
    out, count = [], dict.fromkeys((index for index, _ in lines), 0)
    for (index, reason), loaders in sorted(lines.items(), key=lambda item: -item[0][0]):
        count[index] += 1
        if full or count[index] <= SHOWN_REASONS:
            out.append(f"{table.releases[index].name} {reason}  ({', '.join(loaders)})")
        elif count[index] == SHOWN_REASONS + 1:
            out.append(f"{table.releases[index].name} lacks more: --full")
    return out
