"""The page of the version grid, from the record of the last whole run, ``docs/data/grid.json``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.producers import PRODUCERS
from compat_matrix.report import grid
from compat_matrix.verdict import tally
from docs.markdown import wrapped

RECORD = Path(__file__).parent / "data" / "grid.json"
# What most people ask first: today's loader and the loaders of servers, on what each API writes.
FIRST = (
    ("tf2", "tf2"),
    ("tf2", "cpp"),
    ("reference", "tf2"),
    ("reference", "cpp"),
    ("v1_builder", "tf2"),
    ("v1_builder", "cpp"),
)


def page() -> str:
    """Markdown."""
    facts = json.loads(RECORD.read_text(encoding="utf-8"))
    found = {(table["producer"], table["consumer"]): table for table in tally.tables(facts)}
    first = [key for key in FIRST if key in found]
    out = [_introduction(facts), "\n## The tables most people ask for\n"]
    out += [_table(found[key]) for key in first]
    out.append("\n## All others\n")
    out += [_table(table) for key, table in found.items() if key not in first]
    out += [
        _made(facts),
        _reasons(facts),
        f"\n## The cases\n\n{wrapped(', '.join(f'`{name}`' for name in facts['cases']))}\n",
    ]
    return "".join(out)


def _introduction(facts: Mapping[str, Any]) -> str:
    run = facts["run"]
    writers, readers, asked = set(), set(), set()
    for by_writer in facts["read"].values():
        writers.update(by_writer)
        for by_consumer in by_writer.values():
            asked.update(by_consumer)
            for by_reader in by_consumer.values():
                readers.update(by_reader)
    versions = sorted(writers, key=tally.release_order)
    passed = run["by_outcome"]["PASS"]
    return f"""# Written by X, read by Y

{len(versions)} releases of TensorFlow write, {len(readers)} read: {", ".join(versions)}. {len(facts["cases"])} cases.

`tox -e grid` makes this. It builds and saves each case inside each release. Each release then loads every artifact through each of its
readers, and gives the recorded answers if it can. Each field shows how many cells passed, of those that ran: **passed/ran**. The other
cells are known failures. An entry of the [ledger](../../compat_matrix/verdict/expectations.toml) explains each of them, and the run fails if
one passes or fails differently. A field is empty if the release has no such reader or writer. [Plug-ins](../exporters/plugins.md)
add a row and a column to your own grid (`savedmodel-compat matrix run --grid --plugins FILE`). [Findings](findings.md) has the most
instructive failures, each with a command that shows it.

Last whole run: {run["observed"]} of {run["planned"]} planned cells observed, {passed} of them passed, exit code
{run["exit_code"]}, {run["processes"]} processes on 2 cores{_minutes(run)}. {facts.get("note", "")}

| writer | what it is |
|---|---|
{_legend({key: PRODUCERS[key].summary for key in facts["read"] if key in PRODUCERS})}
| reader | what it is |
|---|---|
{_legend({key: one.summary for key, one in CONSUMERS.items() if key in asked})}"""  # noqa: E501


def _minutes(run: Mapping[str, Any]) -> str:
    return f", {round(run['seconds'] / 60)} minutes" if run["seconds"] else ""


def _legend(names: Mapping[str, str]) -> str:
    return "".join(f"| `{name}` | {summary} |\n" for name, summary in names.items())


def _table(table: Mapping[str, Any]) -> str:
    lines = "\n".join(grid.markdown(table))
    return f"\n### Written by `{table['producer']}`, read by `{table['consumer']}`\n\n{lines}\n"


def _made(facts: Mapping[str, Any]) -> str:
    versions = _writers(facts)
    lines = [
        "\n## What was written\n",
        f"| producer | {' | '.join(versions)} |",
        "|---" * (len(versions) + 1) + "|",
    ]
    for producer, found in facts["made"].items():
        fields = []
        for version in versions:
            counts = found.get(version)
            fields.append(f"{counts.get('passed', 0)}/{sum(counts.values())}" if counts else "")
        lines.append(f"| `{producer}` | " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def _writers(facts: Mapping[str, Any]) -> list[str]:
    return sorted(
        set(itertools.chain.from_iterable(facts["made"].values())), key=tally.release_order
    )


def _reasons(facts: Mapping[str, Any]) -> str:
    rows = "".join(
        f"| {item['cells']} | {item['kind']} | {_plain(item['reason'])} |\n"
        for item in facts["reasons"]
    )
    return f"\n## What explains the failures\n\n| cells | kind | reason |\n|---|---|---|\n{rows}"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
