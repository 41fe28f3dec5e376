"""Rewrite the expectation file from the results of a complete run: stale entries go, new failures come, comments stay.

The file is cut into blocks, an ``[[expect]]`` table with the comment lines right above it; an entry that needs no change keeps
its bytes. (A TOML library counts the comment above a table to the table before: deleting that one would lose it.)
"""

from __future__ import annotations

import datetime
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tomlkit

from compat_matrix.expectations.entries import NEEDS_ERROR, Entry
from compat_matrix.expectations.ledger import Ledger, Verdict
from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell, Plan
from compat_matrix.results import Result, one_line

MAX_PATTERN = 120  # characters of a message that are pinned
MIN_PATTERN = 10  # less says nothing beside an error class
PRODUCER_FAILED = "producer failed"  # how the reason of such a NOT_RUN starts

Failure = tuple[Cell, Result]
Piece = tuple[tuple[str, ...], str]  # of the file, with the place it belongs to


class UpdateRefused(ValueError):
    """The results cannot be made expectations; the message says why."""


@dataclass
class Update:
    """The new text of the file, and one line for each change."""

    text: str = ""
    changes: list[str] = field(default_factory=list)
    new_entries: int = 0


def update(text: str, plan: Plan, results: Mapping[str, Result], reason: str, today: datetime.date) -> Update:
    """Make the file agree with ``results``. New entries get ``kind = "bug"`` and ``reason``.

    Raises LedgerError when the file is invalid, UpdateRefused when the run is partial, when the harness failed in it, or when a
    new entry is needed and ``reason`` is empty. Expired, too wide and overlapping entries need a person and are left alone.
    """
    ledger = Ledger.parse(text)
    cells = [cell for cell in plan if not (cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE)]
    failures = _failures(cells, results)
    head, blocks = split_blocks(text)
    if len(blocks) != len(ledger.entries):
        raise UpdateRefused("the file cannot be cut into its entries: write each as [[expect]] on a line of its own")
    out = Update()
    kept: list[Piece] = [((), head)]
    covered: set[str] = set()  # failures some entry of the old file describes, now or under its new form
    inherited: list[str] = []
    for entry, (block, free_text) in zip(ledger.entries, blocks):
        block_now, orphans = _revise(entry, block, cells, results, out.changes)
        covered.update(cell.id for cell, _ in orphans)
        if block_now is not None:
            kept.append((_order(entry), block_now))
            covered.update(cell.id for cell in cells if entry.selects(cell) and cell.id in failures)
        if free_text.strip():
            kept.append((_order(entry), free_text))
        inherited += [_table_text(table) for table in _group(orphans, cells, _facts_of(entry))]
    new = [pair for cell_id, pair in failures.items() if cell_id not in covered]
    tables = _group(new, cells, {"kind": "bug", "reason": reason, "added": today})
    if tables and not reason.strip():
        raise UpdateRefused(f"{len(tables)} new entries need a reason")
    additions = inherited + [_table_text(table) for table in tables]
    out.new_entries = len(tables)
    out.changes += [f"added {Ledger.parse(_alone(addition)).entries[0].title().partition(' ')[2]}" for addition in additions]
    for addition in additions:
        _insert(kept, (_order(Ledger.parse(_alone(addition)).entries[0]), addition))
    out.text = "\n".join(piece.strip("\n") + "\n" for _, piece in kept)
    _verify(Ledger.parse(out.text), failures.values())
    return out


def _verify(ledger: Ledger, failures: Iterable[Failure]) -> None:
    """A file that does not explain the run it was made from must not be written."""
    for cell, result in failures:
        verdict, entry = ledger.verdict(cell, result)
        if verdict is not Verdict.AS_EXPECTED:
            raise UpdateRefused(f"{cell.id} would be {verdict.value} by {entry.title() if entry else 'no entry'}: edit by hand")


def _failures(cells: Iterable[Cell], results: Mapping[str, Result]) -> dict[str, Failure]:
    """The cells that failed. Raises UpdateRefused for a run that does not say everything."""
    missing, ours, failures = [], [], {}
    for cell in cells:
        result = results.get(cell.id)
        if result is None or (result.outcome is Outcome.NOT_RUN and not result.message.startswith(PRODUCER_FAILED)):
            missing.append(cell.id)
        elif result.outcome in (Outcome.SETUP_ERROR, Outcome.ENV_ERROR):
            ours.append(cell.id)
        elif result.outcome.gate_failure:
            failures[cell.id] = (cell, result)
    if missing:
        raise UpdateRefused(f"a partial run: {len(missing)} planned cells have no result, the first is {missing[0]}")
    if ours:
        raise UpdateRefused(f"the harness or the machine failed in {len(ours)} cells, the first is {ours[0]}")
    return failures


def _revise(
    entry: Entry, block: str, cells: list[Cell], results: Mapping[str, Result], changes: list[str]
) -> tuple[str | None, list[Failure]]:
    """An entry in the light of the results: its block (None: to be removed) and failures that need an entry made of its facts."""
    if not any(entry.names(cell) for cell in cells):
        changes.append(f"removed {entry.title()}: selects no cell")
        return None, []
    judged = [(cell, results[cell.id]) for cell in cells if entry.selects(cell)]
    if not judged:
        return block, []  # for versions that are not here
    failing = [(cell, result) for cell, result in judged if result.outcome.gate_failure]
    same = [pair for pair in failing if entry.describes(pair[1].outcome, pair[1].error_class, pair[1].message_normalised)]
    if not failing:
        changes.append(f"removed {entry.title()}: passes, or is no longer made")
        return None, []
    passes = any(result.outcome is Outcome.PASS for _, result in judged)
    if len(same) == len(failing) and not passes:
        return block, []
    if not same and not passes and len(_group(failing, cells, {})) == 1:
        changes.append(f"changed {entry.title()}: now {failing[0][1].outcome} {failing[0][1].error_class or ''}".rstrip())
        return _edited(block, _error_facts(failing)), []
    changes.append(f"removed {entry.title()}: no longer the same for all {len(judged)} cells it selects")
    return None, same


def _edited(block: str, facts: Mapping[str, Any]) -> str:
    document: Any = tomlkit.parse(block)
    table = document["expect"][0]
    for name in ("outcome", "error_class", "message"):
        if name in facts:
            table[name] = facts[name]
        elif name in table:
            del table[name]
    return tomlkit.dumps(document)


def _group(failures: Iterable[Failure], cells: list[Cell], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One table per case, consumer and error; producers that fail in the same checks share it."""
    groups: dict[tuple[str, ...], list[Failure]] = defaultdict(list)
    for cell, result in failures:
        short = (result.error_class or "").rpartition(".")[2]
        pinned = short or (result.message_normalised[:MAX_PATTERN] if result.outcome in NEEDS_ERROR else "")
        groups[cell.case, cell.consumer, str(result.outcome), pinned].append((cell, result))
    tables = []
    for (case, consumer, _, _), group in sorted(groups.items()):
        checks: dict[str, list[str]] = defaultdict(list)
        for cell, _ in group:
            checks[cell.producer].append(cell.check)
        for failing in sorted({tuple(names) for names in checks.values()}):
            producers = sorted(name for name, names in checks.items() if tuple(names) == failing)
            everywhere = {c.producer for c in cells if (c.case, c.consumer) == (case, consumer)}
            planned = {c.check for c in cells if (c.case, c.consumer) == (case, consumer) and c.producer in producers}
            members = [pair for pair in group if pair[0].producer in producers]
            tables.append(
                {
                    "case": case,
                    "producer": "*" if len(producers) > 1 and set(producers) == everywhere else _one_or_many(producers),
                    "consumer": consumer,
                    "check": "*" if len(failing) > 1 and set(failing) == planned else _one_or_many(failing),
                    **_error_facts(members),
                    **facts,
                }
            )
    return tables


def _one_or_many(names: Iterable[str]) -> str | list[str]:
    names = list(dict.fromkeys(names))
    return names[0] if len(names) == 1 else names


def _error_facts(failures: list[Failure]) -> dict[str, Any]:
    """Outcome, error class and the part of the message all of ``failures`` share."""
    outcome, error_class = failures[0][1].outcome, failures[0][1].error_class
    facts: dict[str, Any] = {"outcome": str(outcome)}
    if error_class:
        facts["error_class"] = error_class.rpartition(".")[2]
    if outcome not in NEEDS_ERROR:  # the text of a difference is numbers
        return facts
    messages = [result.message_normalised for _, result in failures]
    prefix = os.path.commonprefix(messages)  # noqa: RUF071  these are no paths
    if any(len(prefix) < len(message) for message in messages) or len(prefix) > MAX_PATTERN:
        prefix = prefix[:MAX_PATTERN].rpartition(" ")[0] or prefix[:MAX_PATTERN]  # whole words
    if len(prefix) >= MIN_PATTERN or (prefix and not error_class):
        facts["message"] = re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", prefix)
    if not ({"error_class", "message"} & set(facts)):
        raise UpdateRefused(f"{failures[0][0].id}: {outcome} without error class and message cannot be pinned")
    return facts


def _facts_of(entry: Entry) -> dict[str, Any]:
    """What entries that replace ``entry`` take over."""
    until = entry.until if entry.until is None or isinstance(entry.until, datetime.date) else str(entry.until)
    ranges = {"producer_version": entry.producer_version, "consumer_version": entry.consumer_version}
    facts = {"kind": entry.kind, "reason": entry.reason, "issue": entry.issue, "added": entry.added, "until": until}
    facts |= {name: str(specifier) for name, specifier in ranges.items() if specifier is not None}
    return {name: value for name, value in facts.items() if value is not None}


def _order(entry: Entry) -> tuple[str, ...]:
    return (",".join(entry.case), ",".join(entry.consumer), ",".join(entry.producer), ",".join(entry.check))


def _insert(pieces: list[Piece], piece: Piece) -> None:
    place = next((i for i, (key, _) in enumerate(pieces) if key > piece[0]), len(pieces))
    pieces.insert(place, piece)


FIELDS = (
    *("case", "producer", "producer_version", "consumer", "consumer_version", "check"),
    *("outcome", "error_class", "message", "kind", "reason", "issue", "added", "until"),
)


def _table_text(facts: Mapping[str, Any]) -> str:
    document = tomlkit.document()
    for name in FIELDS:
        if name in facts:
            value = facts[name]
            literal = name == "message" and "\\" in value and "'" not in value
            document.add(name, tomlkit.string(one_line(value, len(value)), literal=True) if literal else value)
    return "[[expect]]\n" + tomlkit.dumps(document)


def _alone(block: str) -> str:
    return "schema = 1\n" + block


def split_blocks(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text before the first entry; each entry with the comment lines directly above it, and the free text behind it."""
    pieces: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if re.match(r"\s*\[\[\s*expect\s*\]\]\s*(#.*)?$", line):
            block: list[str] = []
            while pieces[-1] and pieces[-1][-1].lstrip().startswith("#"):
                block.insert(0, pieces[-1].pop())
            pieces.append(block)
        pieces[-1].append(line)
    return "".join(pieces[0]), [_cut_behind(piece) for piece in pieces[1:]]


def _cut_behind(lines: list[str]) -> tuple[str, str]:
    """Cut at the first empty line behind the last key: comments below it are about something else."""
    last = max(i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    end = next((i for i in range(last, len(lines)) if not lines[i].strip()), len(lines))
    return "".join(lines[:end]), "".join(lines[end:])
