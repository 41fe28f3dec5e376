"""Rewrite the expectation file from the results of a complete run: remove stale entries, add new
failures, keep comments.

An entry that the results do not contradict keeps its bytes. An entry that is true for only some of
its cells is replaced by entries for these cells, with its reason. New failures become one entry for
each consumer and error (``new_entries``). A failure that the op history predicts does not need an
entry.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Result
from compat_matrix.verdict.blocks import alone, comments_above, edited, split_blocks
from compat_matrix.verdict.entries import Entry
from compat_matrix.verdict.ledger import Coverage, Ledger, askable_cells, judge
from compat_matrix.verdict.new_entries import (
    Failure,
    Observed,
    UpdateRefused,
    by_error,
    entries_text,
    error_facts,
    unexplained,
)
from compat_matrix.verdict.prediction import predicted
from savedmodel_common.printable import counted

PRODUCER_FAILED = "producer failed"  # how the reason of such a NOT_RUN starts
ERROR_FIELDS = ("outcome", "error_class", "message")

Piece = tuple[tuple[str, ...], str]  # of the file, with the place it belongs to


@dataclass
class Update:
    """The new text of the file, and one line for each change."""

    text: str = ""
    changes: list[str] = field(default_factory=list)
    new_entries: int = 0


@dataclass
class Revision:
    """The revision of one entry: its block (None: removed), the failures that it described, and the
    cells it selects. ``contradicted``: it is true for the failures ``same`` only.
    """

    entry: Entry
    block: str | None
    same: list[Failure] = field(default_factory=list)
    selected: list[Cell] = field(default_factory=list)
    contradicted: bool = False
    change: str = ""

    @property
    def stays(self) -> bool:
        """Whether the entry goes on selecting what it selects."""
        return self.block is not None and not self.contradicted


def update(
    text: str, plan: Plan, results: Mapping[str, Result], reason: str, today: datetime.date
) -> Update:
    """Make the file agree with ``results``.

    The same results and file give the same text.

    New failures get ``kind = "bug"`` and ``reason``. Raises LedgerError if the file is invalid, and
    UpdateRefused if the run is partial, if the harness failed in it, or if new failures lack a
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
    revisions = _revisions(ledger, [block for block, _ in blocks], plan, cells, results)
    observed = Observed(cells, results)
    for revision in revisions:
        if revision.stays:
            observed.add(revision.selected)
    kept: list[Piece] = [((), head)]
    for revision, (block, free_text) in zip(revisions, blocks):
        kept += [(_order(alone(piece)), piece) for piece in _pieces(revision, block, observed)]
        out.changes += [revision.change] if revision.change else []
        if free_text.strip():
            kept.append((_order(revision.entry), free_text))
    described: set[str] = set()
    for revision in revisions:
        described.update(cell.id for cell, _ in revision.same)
    new = [failure for cell_id, failure in failures.items() if cell_id not in described]
    additions = _additions(new, reason, today, observed)
    out.new_entries = len(additions)
    for addition in additions:
        entry = alone(addition)
        out.changes.append(f"added {entry.title().partition(' ')[2]}")
        place = next((i for i, (key, _) in enumerate(kept) if key > _order(entry)), len(kept))
        kept.insert(place, (_order(entry), addition))
    out.text = "\n".join(piece.strip("\n") + "\n" for _, piece in kept)
    _verify(text, out.text, plan, results, today)
    return out


def _pieces(revision: Revision, block: str, observed: Observed) -> list[str]:
    """Return the blocks that take the place of an entry."""
    if revision.contradicted:
        return _replaced(revision, block, observed)
    return [revision.block] if revision.block else []


def _revisions(
    ledger: Ledger,
    blocks: Sequence[str],
    plan: Plan,
    cells: Sequence[Cell],
    results: Mapping[str, Result],
) -> list[Revision]:
    """Revise every entry by the results.

    Raises UpdateRefused for a change that a narrowed plan does not justify.
    """
    coverage, selected = Coverage.of(plan), _selected(ledger, cells)
    revisions = []
    for entry, block in zip(ledger.entries, blocks):
        revision = _revise(entry, block, selected[entry.index], coverage, results)
        revisions.append(revision)
        if plan.narrowed and revision.selected and revision.change:
            raise UpdateRefused(
                f"{revision.change}; but this run left out cases or checks that it may speak of:"
                " edit it by hand"
            )
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
    if entry.outcome is Outcome.PASS:
        return Revision(
            entry, block, [], selected
        )  # a person's entry against a prediction is removed only by a person
    judged = [(cell, results[cell.id]) for cell in selected]
    failing = [(cell, result) for cell, result in judged if result.outcome.gate_failure]
    if not failing:
        change = f"removed {entry.title()}: passes, or is no longer made"
        return Revision(entry, None, [], selected, change=change)
    same = [
        pair
        for pair in failing
        if entry.describes(pair[1].outcome, pair[1].error_class, pair[1].message_normalised)
    ]
    passes = any(result.outcome is Outcome.PASS for _, result in judged)
    if len(same) == len(failing) and not passes:
        return Revision(entry, block, same, selected)
    if not same and not passes and _one_error(failing):
        change = (
            f"changed {entry.title()}: now {failing[0][1].outcome}"
            f" {failing[0][1].error_class or ''}".rstrip()
        )
        facts = error_facts(failing)
        return Revision(entry, edited(block, facts, ERROR_FIELDS), failing, selected, change=change)
    change = f"removed {entry.title()}: no longer the same for all {len(selected)} cells it selects"
    return Revision(entry, None, same, selected, contradicted=bool(same), change=change)


def _one_error(failing: Iterable[Failure]) -> bool:
    """Return whether all failures have the same outcome and error class."""
    errors = {
        (result.outcome, (result.error_class or "").rpartition(".")[2]) for _, result in failing
    }
    return len(errors) == 1


def _replaced(revision: Revision, block: str, observed: Observed) -> list[str]:
    """Return blocks for the failures that an entry still describes, with its facts and comments."""
    entry = revision.entry
    pieces = entries_text(_facts_of(entry), [cell for cell, _ in revision.same], observed)
    pieces[0] = comments_above(block) + pieces[0]
    return pieces


def _facts_of(entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry but its names: they stay true for some of its cells."""
    is_version = isinstance(entry.until, Version)
    facts = {
        "producer_version": entry.producer_version and str(entry.producer_version),
        "consumer_version": entry.consumer_version and str(entry.consumer_version),
        "outcome": entry.outcomes,
        "error_class": entry.error_class,
        "message": entry.message,
        "kind": entry.kind,
        "reason": entry.reason,
        "issue": entry.issue,
        "added": entry.added,
        "until": str(entry.until) if is_version else entry.until,
        "wide": entry.wide,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _additions(
    new: Iterable[Failure], reason: str, today: datetime.date, observed: Observed
) -> list[str]:
    """Return new entries for the failures without an entry.

    Raises UpdateRefused if there are some, and no reason.
    """
    groups = by_error(new)
    if groups and not reason.strip():
        lines = [unexplained(error, members) for error, members in groups]
        raise UpdateRefused(
            f"{len(lines)} kinds of new failures need a reason:\n" + "\n".join(lines)
        )
    tables = []
    for error, members in groups:
        facts = {**error, "kind": "bug", "reason": reason, "added": today}
        tables += entries_text(facts, [cell for cell, _ in members], observed)
    return tables


def _order(entry: Entry) -> tuple[str, ...]:
    return (
        ",".join(entry.case),
        ",".join(entry.consumer),
        ",".join(entry.producer),
        ",".join(entry.check),
    )
