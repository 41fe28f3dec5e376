"""Rewrite the expectation file from the results of a complete run: remove stale entries, add new
failures, keep comments.

An entry that the results do not contradict keeps its bytes. An entry that is true for only some of
its cells is narrowed to their versions, or else to these cells. New failures are grouped by cause
(``causes``) and written as few entries (``clusters``). A failure that the op history predicts does
not need an entry.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Result
from compat_matrix.verdict.blocks import (
    alone,
    comments_above,
    edited,
    split_blocks,
    table_text,
    with_ranges,
)
from compat_matrix.verdict.causes import (
    MAX_PATTERN,
    Cause,
    Causes,
    Rule,
    core_message,
    facts_of,
    literal,
    unexplained,
)
from compat_matrix.verdict.clusters import Board
from compat_matrix.verdict.entries import NEEDS_ERROR, Entry
from compat_matrix.verdict.ledger import MAX_QUESTIONS, Coverage, Ledger, askable_cells, judge
from compat_matrix.verdict.prediction import predicted
from savedmodel_common.printable import counted

MIN_PATTERN = 10  # characters; a shorter pattern adds nothing to an error class
PRODUCER_FAILED = "producer failed"  # how the reason of such a NOT_RUN starts
ERROR_FIELDS = ("outcome", "error_class", "message")
WIDE = "one cause"

Failure = tuple[Cell, Result]
Piece = tuple[tuple[str, ...], str]  # of the file, with the place it belongs to


class UpdateRefused(ValueError):
    """The results cannot become expectations; the message says why."""


@dataclass
class Update:
    """The new text of the file, and one line for each change."""

    text: str = ""
    changes: list[str] = field(default_factory=list)
    new_entries: int = 0


@dataclass
class Revision:
    """The revision of one entry: its block (None: removed), the failures that it described, and its
    other cells.
    """

    entry: Entry
    block: str | None
    same: list[Failure] = field(default_factory=list)
    selected: list[Cell] = field(default_factory=list)
    contradicted: bool = False
    change: str = ""


def update(
    text: str,
    plan: Plan,
    results: Mapping[str, Result],
    reason: str,
    today: datetime.date,
    rules: Sequence[Rule] = (),
    remake: bool = False,
) -> Update:
    """Make the file agree with ``results``.

    The same results and file give the same text.

    ``rules`` give the causes of new failures; all others get ``kind = "bug"`` and ``reason``. With
    ``remake``, entries that rules made are made anew. Raises LedgerError if the file is invalid,
    and UpdateRefused if the run is partial, if the harness failed in it, or if new failures lack a
    reason. Expired and overlapping entries are left for a person.
    """
    ledger = Ledger.parse(text)
    cells = askable_cells(plan)
    failures = _failures(cells, results)
    head, blocks = split_blocks(text)
    if len(blocks) != len(ledger.entries):
        raise UpdateRefused(
            "the file cannot be cut into its entries: write each as [[expect]] on a line of its own"
        )
    out = Update()
    revisions = _revisions(ledger, [block for block, _ in blocks], plan, cells, results, remake)
    board = Board(cells, results)
    for revision in revisions:
        if revision.block is not None and not revision.contradicted:
            board.take(revision.selected)
    kept: list[Piece] = [((), head)]
    covered: set[str] = (
        set()
    )  # failures that an entry of the old file describes, in its old or new form
    for revision, (block, free_text) in zip(revisions, blocks):
        pieces = (
            _narrowed(revision, block, board)
            if revision.contradicted
            else [revision.block]
            if revision.block
            else []
        )
        out.changes += [revision.change] if revision.change else []
        kept += [(_order(alone(piece)), piece) for piece in pieces]
        if pieces:
            covered.update(cell.id for cell, _ in revision.same)
        if free_text.strip():
            kept.append((_order(revision.entry), free_text))
    known = [
        revision.entry for revision in revisions if revision.block is not None or revision.same
    ]
    causes = Causes(known, rules, {"kind": "bug", "reason": reason, "added": today})
    additions = _additions(
        (pair for cell_id, pair in failures.items() if cell_id not in covered), causes, board
    )
    out.new_entries = len(additions)
    for addition in additions:
        entry = alone(addition)
        out.changes.append(f"added {entry.title().partition(' ')[2]}")
        place = next((i for i, (key, _) in enumerate(kept) if key > _order(entry)), len(kept))
        kept.insert(place, (_order(entry), addition))
    out.text = "\n".join(piece.strip("\n") + "\n" for _, piece in kept)
    _verify(text, out.text, plan, results, today)
    return out


def _revisions(
    ledger: Ledger,
    blocks: Sequence[str],
    plan: Plan,
    cells: Sequence[Cell],
    results: Mapping[str, Result],
    remake: bool,
) -> list[Revision]:
    """Revise every entry by the results.

    Raises UpdateRefused for a change that a narrowed plan does not justify.
    """
    coverage, selected = Coverage.of(plan), _selected(ledger, cells)
    revisions = []
    for entry, block in zip(ledger.entries, blocks):
        if remake and entry.rule:
            revisions.append(Revision(entry, None))
            continue
        revisions.append(_revise(entry, block, selected[entry.index], coverage, results))
        if plan.narrowed and selected[entry.index]:
            _must_not_go(revisions[-1])
    return revisions


def _selected(ledger: Ledger, cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells of each entry."""
    found: list[list[Cell]] = [[] for _ in ledger.entries]
    for cell in cells:
        for entry in ledger.entries_for(cell):
            found[entry.index].append(cell)
    return found


def _verify(
    before: str, after: str, plan: Plan, results: Mapping[str, Result], today: datetime.date
) -> None:
    """Check that the new file explains the run from which it was made, and no cell twice."""
    ledger = Ledger.parse(after)
    report = judge(ledger, plan, results, today)
    for facts in (
        report.unexpected_fail,
        report.wrong_error,
        report.wrong_prediction,
        report.unexpected_pass,
    ):
        if facts:
            who = ledger.entries[facts[0]["entry"]].title() if "entry" in facts[0] else "no entry"
            raise UpdateRefused(
                f"{facts[0]['cell']} would be {facts[0]['outcome']} by {who}: edit by hand"
            )
    known = {fact["cell"] for fact in judge(Ledger.parse(before), plan, {}, today).overlap}
    for fact in report.overlap:
        if fact["cell"] not in known:
            raise UpdateRefused(
                f"{fact['cell']} would be selected by {' and '.join(fact['titles'])}: edit by hand"
            )


def _failures(cells: Iterable[Cell], results: Mapping[str, Result]) -> dict[str, Failure]:
    """Return the cells that failed, and not as predicted.

    Raises UpdateRefused for an incomplete run.
    """
    missing, ours, unstable, failures = [], [], [], {}
    for cell in cells:
        result = results.get(cell.id)
        if any(
            Version(text).local
            for text in (cell.producer_version, cell.consumer_version)
            if text[:1].isdigit()
        ):
            raise UpdateRefused(
                f"{cell.id}: no range of versions can tell a labelled runtime from its release"
            )
        if result is None or (
            result.outcome is Outcome.NOT_RUN and not result.message.startswith(PRODUCER_FAILED)
        ):
            missing.append(cell.id)
        elif result.outcome.harness_failure:
            ours.append(cell.id)
        elif result.outcome is Outcome.UNSTABLE:
            unstable.append(cell.id)
        elif result.outcome.gate_failure and not predicted(result):
            failures[cell.id] = (cell, result)
    if missing:
        raise UpdateRefused(
            f"a partial run: {len(missing)} planned cells have no result, the first is {missing[0]}"
        )
    if ours:
        raise UpdateRefused(
            f"the harness or the machine failed in {len(ours)} cells, the first is {ours[0]}"
        )
    if unstable:
        raise UpdateRefused(
            f"{counted(len(unstable), 'cell')} gave two outcomes in two processes (UNSTABLE), the"
            f" first is {unstable[0]}. Find the cause, then run the matrix again"
        )
    return failures


def _revise(
    entry: Entry,
    block: str,
    selected: list[Cell],
    coverage: Coverage,
    results: Mapping[str, Result],
) -> Revision:
    """Revise an entry by the results."""
    if not selected:
        if coverage.hold(entry):
            return Revision(entry, None, change=f"removed {entry.title()}: selects no cell")
        return Revision(entry, block)  # it is about versions that are not in this run
    judged = [(cell, results[cell.id]) for cell in selected]
    failing = [(cell, result) for cell, result in judged if result.outcome.gate_failure]
    if entry.outcome is Outcome.PASS:
        return Revision(
            entry, block, [], selected
        )  # a person's entry against a prediction is removed only by a person
    same = [
        pair
        for pair in failing
        if entry.describes(pair[1].outcome, pair[1].error_class, pair[1].message_normalised)
    ]
    if not failing:
        return Revision(
            entry, None, change=f"removed {entry.title()}: passes, or is no longer made"
        )
    passes = any(result.outcome is Outcome.PASS for _, result in judged)
    if len(same) == len(failing) and not passes:
        return Revision(entry, block, same, selected)
    if same:
        return Revision(entry, block, same, selected, contradicted=True)
    shapes = {
        (result.outcome, (result.error_class or "").rpartition(".")[2]) for _, result in failing
    }
    if not passes and len(shapes) == 1:
        facts = error_facts(failing)
        change = (
            f"changed {entry.title()}: now {failing[0][1].outcome}"
            f" {failing[0][1].error_class or ''}".rstrip()
        )
        return Revision(entry, edited(block, facts, ERROR_FIELDS), failing, selected, change=change)
    return Revision(
        entry,
        None,
        change=(
            f"removed {entry.title()}: no longer the same for all {len(judged)} cells it selects"
        ),
    )


def _must_not_go(revision: Revision) -> None:
    """Refuse to narrow an entry by a run that covers only some of its cases or checks.

    Raises UpdateRefused.
    """
    if revision.change and not revision.entry.rule:
        raise UpdateRefused(
            f"{revision.change}; but this run left out cases or checks that it may speak of: edit"
            " it by hand"
        )


def _narrowed(revision: Revision, block: str, board: Board) -> list[str]:
    """Return blocks that narrow an entry to the cells ``same``: by versions if that suffices, else
    by cells.
    """
    entry, failing = revision.entry, [cell for cell, _ in revision.same]
    old = {"producer_version": entry.producer_version, "consumer_version": entry.consumer_version}
    ids = {cell.id for cell in failing}
    rectangle = board.narrowed(failing, [cell for cell in revision.selected if cell.id not in ids])
    if rectangle is not None:
        ranges = board.ranges(rectangle)
        words = "; ".join(f"{name} {text}" for name, text in ranges.items())
        revision.change = f"narrowed {entry.title()}: {words}"
        board.take(failing)
        return [with_ranges(block, {name: _both(old[name], text) for name, text in ranges.items()})]
    revision.change = (
        f"removed {entry.title()}: no longer the same for all {len(revision.selected)} cells it"
        " selects"
    )
    facts = {
        "outcome": entry.outcomes,
        "error_class": entry.error_class,
        "message": entry.message,
        **facts_of(entry),
    }
    facts = {name: value for name, value in facts.items() if value is not None}
    pieces = []
    for selectors in board.entries(failing, entry):
        for name, before in old.items():
            if before is not None:
                selectors[name] = _both(before, selectors.get(name, ""))
        pieces.append(table_text({**facts, **selectors}))
    pieces[0] = comments_above(block) + pieces[0]
    return pieces


def _both(before: Any, text: str) -> str:
    """Return the intersection of two ranges: the narrower of two lower or upper bounds."""
    parts = SpecifierSet(",".join(filter(None, (str(before) if before is not None else "", text))))
    lower = sorted(
        (part for part in parts if part.operator == ">="), key=lambda part: Version(part.version)
    )
    upper = sorted(
        (part for part in parts if part.operator == "<"), key=lambda part: Version(part.version)
    )
    others = sorted(str(part) for part in parts if part.operator not in (">=", "<"))
    return ",".join([*others, *map(str, lower[-1:]), *map(str, upper[:1])])


def _additions(new: Iterable[Failure], causes: Causes, board: Board) -> list[str]:
    """Return new entries for the failures without an entry.

    Raises UpdateRefused if one lacks a reason.
    """
    groups: dict[tuple[Cause, bool], list[Failure]] = {}
    for cell, result in new:
        groups.setdefault((causes.of(cell, result), cell.is_production), []).append((cell, result))
    silent = [
        (cause, *pair)
        for (cause, _), members in groups.items()
        if not dict(cause.facts)["reason"].strip()
        for pair in members
    ]
    if silent:
        lines = unexplained(silent)
        raise UpdateRefused(
            f"{len(lines)} kinds of new failures need a reason:\n" + "\n".join(lines)
        )
    tables = []
    for (cause, _), members in sorted(
        groups.items(), key=lambda item: (-len(item[1]), repr(item[0]))
    ):
        facts = {
            "outcome": cause.outcome,
            "error_class": cause.error_class,
            "message": cause.message,
            **dict(cause.facts),
        }
        if cause.words:
            facts |= {"error_class": None, "message": None, **error_facts(members)}
        for selectors in board.entries(cell for cell, _ in members):
            wide = facts.get("wide") or (
                WIDE if _questions(selectors, board) > MAX_QUESTIONS else None
            )
            table = {**facts, **selectors, "wide": wide}
            tables.append(
                table_text({name: value for name, value in table.items() if value is not None})
            )
    return tables


def _questions(selectors: Mapping[str, Any], board: Board) -> int:
    entry = alone(
        table_text(
            {
                "outcome": "CRASH",
                "kind": "bug",
                "reason": "-",
                "added": datetime.date.min,
                **selectors,
            }
        )
    )
    return sum(entry.names_question(*names) for names in board.asked)


def error_facts(failures: Sequence[Failure]) -> dict[str, Any]:
    """Return the outcome, the error class and the part of the message that all of ``failures``
    share.
    """
    outcome, error_class = failures[0][1].outcome, failures[0][1].error_class
    facts: dict[str, Any] = {"outcome": str(outcome)}
    if error_class:
        facts["error_class"] = error_class.rpartition(".")[2]
    if outcome not in NEEDS_ERROR:  # the message of a difference holds only numbers
        return facts
    messages = [core_message(result) for _, result in failures]
    prefix = os.path.commonprefix(messages)  # noqa: RUF071  not paths, but messages
    if any(len(prefix) < len(message) for message in messages) or len(prefix) > MAX_PATTERN:
        prefix = prefix[:MAX_PATTERN].rpartition(" ")[0] or prefix[:MAX_PATTERN]  # whole words
    if len(prefix) >= MIN_PATTERN or (prefix and not error_class):
        facts["message"] = literal(prefix)
    if not ({"error_class", "message"} & set(facts)):
        raise UpdateRefused(
            f"{failures[0][0].id}: {outcome} without error class and message cannot be pinned"
        )
    return facts


def _order(entry: Entry) -> tuple[str, ...]:
    return (
        ",".join(entry.case),
        ",".join(entry.consumer),
        ",".join(entry.producer),
        ",".join(entry.check),
    )
