"""The ledger: it finds the entry for a cell, judges results, and finds stale entries.

Only :meth:`Ledger.read` reads a file.
"""

from __future__ import annotations

import datetime
import enum
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Result
from compat_matrix.verdict import prediction
from compat_matrix.verdict.entries import Entry, LedgerError, matches, read_entry
from savedmodel_common import toml

SCHEMA = 1
MAX_QUESTIONS = 20  # an entry that selects more needs the field `wide`

Names = tuple[
    str, str, str, str
]  # case, producer, consumer, check: a question, whatever the versions


class Verdict(enum.Enum):
    """The judgement of a result by the ledger."""

    AS_EXPECTED = "as_expected"
    UNEXPECTED_FAIL = "unexpected_fail"
    UNEXPECTED_PASS = "unexpected_pass"
    WRONG_ERROR = "wrong_error"
    WRONG_PREDICTION = "wrong_prediction"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Ledger:
    """The entries of one file, in its order."""

    entries: tuple[Entry, ...] = ()
    _by_names: dict[Names, tuple[Entry, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_case: dict[str, tuple[Entry, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read a file. Raises LedgerError with every problem found."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LedgerError([f"{path}: {error}"]) from error
        try:
            return cls.parse(text)
        except LedgerError as error:
            raise LedgerError([f"{path}: {problem}" for problem in error.problems]) from error

    @classmethod
    @functools.lru_cache(maxsize=2)  # a run reads its ledger to plan, to execute and to judge
    def parse(cls, text: str) -> Ledger:
        """Parse TOML text. Raises LedgerError with every problem found."""
        try:
            data = toml.parse(text)
        except ValueError as error:
            raise LedgerError([f"not TOML: {error}"]) from error
        if data.get("schema") != SCHEMA:
            raise LedgerError([f"schema must be {SCHEMA}, not {data.get('schema')!r}"])
        tables = data.get("expect", [])
        unknown = sorted(set(data) - {"schema", "expect"})
        if unknown or not isinstance(tables, list):
            raise LedgerError(
                [f"unknown key {key!r}" for key in unknown]
                or ["expect must be an array of tables: [[expect]]"]
            )
        entries, problems = [], []
        for index, table in enumerate(tables):
            try:
                entries.append(read_entry(index, table))
            except ValueError as error:
                problems.append(f"entry {index + 1}: {error}")
        if problems:
            raise LedgerError(problems)
        return cls(tuple(entries))

    def entry_for(self, cell: Cell) -> Entry | None:
        """Return the first entry that selects a cell (two are reported as an overlap)."""
        return next(self.entries_for(cell), None)

    def entries_for(self, cell: Cell) -> Iterator[Entry]:
        """Return all entries that select a cell, in the order of the file."""
        for entry in self.named(names_of(cell)):
            if entry.of_producer(cell.producer_version) and entry.of_consumer(
                cell.consumer_version
            ):
                yield entry

    def named(self, names: Names) -> tuple[Entry, ...]:
        """Return the entries whose selectors match a question.

        Cached, since a grid asks each question for hundreds of pairs.
        """
        found = self._by_names.get(names)
        if found is None:
            found = tuple(
                entry for entry in self._of_case(names[0]) if entry.names_question(*names)
            )
            self._by_names[names] = found
        return found

    def _of_case(self, case: str) -> tuple[Entry, ...]:
        """Return the entries for some question about a case.

        Few entries are, and each case has a hundred questions.
        """
        found = self._by_case.get(case)
        if found is None:
            found = self._by_case[case] = tuple(
                entry for entry in self.entries if matches(entry.case, case)
            )
        return found

    def verdict(self, cell: Cell, result: Result) -> tuple[Verdict, Entry | None]:
        """Judge one result: by the entry for its cell if there is one, else by its prediction."""
        entry = self.entry_for(cell)
        outcome = result.outcome
        if outcome is Outcome.NOT_RUN:
            return Verdict.NOT_JUDGED, entry
        if outcome is Outcome.NOT_APPLICABLE:
            return Verdict.AS_EXPECTED, None
        foretold = (
            prediction.of(result)
            if entry is None and (outcome.expectable or outcome is Outcome.PASS)
            else None
        )
        if foretold is not None and foretold.says is prediction.Says.FAILS:
            return (
                Verdict.AS_EXPECTED
                if prediction.holds(foretold, result)
                else Verdict.WRONG_PREDICTION
            ), None
        if entry is None or not (outcome.expectable or outcome is Outcome.PASS):
            return (Verdict.UNEXPECTED_FAIL if outcome.gate_failure else Verdict.AS_EXPECTED), entry
        if outcome is Outcome.PASS:
            return (
                Verdict.AS_EXPECTED if entry.outcome is Outcome.PASS else Verdict.UNEXPECTED_PASS
            ), entry
        as_recorded = entry.describes(outcome, result.error_class, result.message_normalised)
        if (
            not as_recorded and entry.outcome is not Outcome.PASS
        ):  # a release with two reasons to fail may meet either first
            as_recorded = prediction.predicted(result)
        return (Verdict.AS_EXPECTED if as_recorded else Verdict.WRONG_ERROR), entry

    def judged(self, cell: Cell, result: Result) -> Result:
        """Return ``result`` with ``expected`` and ``expectation`` filled in."""
        verdict, entry = self.verdict(cell, result)
        result.expected = None if verdict is Verdict.NOT_JUDGED else verdict is Verdict.AS_EXPECTED
        result.expectation = entry.index if entry else None
        return result


@dataclass
class LedgerReport:
    """The contradictions between plan, results and ledger.

    Every member is a list of JSON objects.
    """

    unexpected_fail: list[dict[str, Any]] = field(default_factory=list)
    unexpected_pass: list[dict[str, Any]] = field(default_factory=list)
    wrong_error: list[dict[str, Any]] = field(default_factory=list)
    wrong_prediction: list[dict[str, Any]] = field(default_factory=list)
    dead_entry: list[dict[str, Any]] = field(default_factory=list)
    too_wide: list[dict[str, Any]] = field(default_factory=list)
    overlap: list[dict[str, Any]] = field(default_factory=list)
    expired: list[dict[str, Any]] = field(default_factory=list)
    listed_not_run: list[dict[str, Any]] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        """Whether the ledger must be changed. Entries whose cells did not run do not count."""
        return bool(
            self.unexpected_pass or self.dead_entry or self.too_wide or self.overlap or self.expired
        )


def judge_entries(
    ledger: Ledger, plan: Plan, today: datetime.date, tool: Version | None = None
) -> LedgerReport:
    """Find the problems of entries that are known before anything runs: dead, too wide,
    overlapping, expired.
    """
    report = LedgerReport()
    questions: dict[int, set[Names]] = {
        entry.index: set() for entry in ledger.entries
    }  # of each entry, without versions
    in_range: dict[int, set[Names]] = {entry.index: set() for entry in ledger.entries}
    for cell in askable_cells(plan):
        names = names_of(cell)
        for entry in ledger.named(names):
            questions[entry.index].add(names)
        selecting = list(ledger.entries_for(cell))
        for entry in selecting:
            in_range[entry.index].add(names)
        if len(selecting) > 1:
            members = {
                "entries": [e.index for e in selecting],
                "titles": [e.title() for e in selecting],
            }
            report.overlap.append({"cell": cell.id, **members})
    coverage = Coverage.of(plan)
    for entry in ledger.entries:
        fact = {"entry": entry.index, "title": entry.title(), "reason": entry.reason}
        if not questions[entry.index] and coverage.hold(entry):
            report.dead_entry.append(fact)
        if len(in_range[entry.index]) > MAX_QUESTIONS and not entry.wide:
            report.too_wide.append({**fact, "cells": len(in_range[entry.index])})
        if entry.expired(today, tool):
            report.expired.append({**fact, "until": str(entry.until)})
    return report


def names_of(cell: Cell) -> Names:
    """Return the question of a cell, without versions."""
    return cell.case, cell.producer, cell.consumer, cell.check


def askable_cells(plan: Plan) -> list[Cell]:
    """Return the cells of a plan, except those that it decided to be not applicable."""
    return [
        cell
        for cell in plan
        if not (cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE)
    ]


@dataclass(frozen=True)
class Coverage:
    """The writers and readers of a plan, with their versions.

    One ledger serves many plans, with one or many TensorFlows. A reader that a TensorFlow lacks
    is not in its plan: all cells of `reference` at 2.4.4 are not applicable.

    ``unmade``: case and producer of the artifacts that no runtime here makes. ``questions``: the
    cases and checks of a plan that leaves some out.
    """

    producers: frozenset[tuple[str, str]]
    consumers: frozenset[tuple[str, str]]
    unmade: frozenset[tuple[str, str]]
    questions: frozenset[tuple[str, str]] | None

    @classmethod
    def of(cls, plan: Plan) -> Coverage:
        productions: dict[tuple[str, str], bool] = {}
        for cell in plan:
            if cell.is_production:
                made = cell.decided is None or cell.decided.outcome is not Outcome.NOT_APPLICABLE
                productions[cell.case, cell.producer] = made or productions.get(
                    (cell.case, cell.producer), False
                )
        return cls(
            frozenset((cell.producer, cell.producer_version) for cell in plan),
            frozenset((cell.consumer, cell.consumer_version) for cell in askable_cells(plan)),
            frozenset(names for names, made in productions.items() if not made),
            frozenset((cell.case, cell.check) for cell in plan) if plan.narrowed else None,
        )

    def hold(self, entry: Entry) -> bool:
        """Return whether this plan has the producers, consumers and versions of an entry, so that
        the entry should select a cell."""
        if any(
            matches(entry.case, case) and matches(entry.producer, producer)
            for case, producer in self.unmade
        ):
            return False
        asked = self.questions
        if asked is not None and not any(
            matches(entry.case, case) and matches(entry.check, check) for case, check in asked
        ):
            return False
        return any(
            matches(entry.producer, name) and entry.of_producer(version)
            for name, version in self.producers
        ) and any(
            entry.asks(name) and entry.of_consumer(version) for name, version in self.consumers
        )


def judge(
    ledger: Ledger,
    plan: Plan,
    results: Mapping[str, Result],
    today: datetime.date,
    tool: Version | None = None,
) -> LedgerReport:
    """Join plan, results (by cell id; a missing one counts as not run) and ledger."""
    report = judge_entries(ledger, plan, today, tool)
    not_run: dict[int, list[str]] = {}
    for cell in plan:
        result = results.get(cell.id)
        if result is None:
            verdict, entry = Verdict.NOT_JUDGED, ledger.entry_for(cell)
        else:
            verdict, entry = ledger.verdict(cell, result)
        if verdict is Verdict.NOT_JUDGED and entry:
            not_run.setdefault(entry.index, []).append(cell.id)
        if verdict in (Verdict.AS_EXPECTED, Verdict.NOT_JUDGED) or result is None:
            continue
        fact: dict[str, Any] = {
            "cell": cell.id,
            "outcome": str(result.outcome),
            "error_class": result.error_class,
            "message": result.message_normalised[:500],
        }
        foretold = "" if entry else prediction.line(result)
        if foretold:
            fact["prediction"] = foretold
        if entry:
            wanted = {
                "outcome": str(entry.outcome),
                "error_class": entry.error_class,
                "message": entry.message,
            }
            fact |= {"entry": entry.index, "wanted": wanted}
        getattr(report, verdict.value).append(fact)
    report.listed_not_run = [
        {"entry": index, "title": ledger.entries[index].title(), "cells": cells}
        for index, cells in sorted(not_run.items())
    ]
    return report
