"""The ledger: entries, which cells they select, and what the results say about them. Pure functions, no files but one read."""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import tomlkit
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from tomlkit.exceptions import TOMLKitError

from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell, Plan
from compat_matrix.results import Result

SCHEMA = 1
MAX_CELLS = 20  # an entry that selects more needs the field `wide`
KINDS = ("bug", "by_design", "unsupported_upstream", "environment")
SELECTORS = ("case", "producer", "consumer", "check")
# An error may have many causes; only an entry that says which one can be contradicted.
NEEDS_ERROR = (Outcome.LOAD_ERROR, Outcome.CALL_ERROR, Outcome.REJECTED)


class LedgerError(ValueError):
    """The expectation file cannot be used. ``problems`` holds one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class Verdict(enum.Enum):
    """What a result is in the light of the ledger."""

    AS_EXPECTED = "as_expected"
    UNEXPECTED_FAIL = "unexpected_fail"
    UNEXPECTED_PASS = "unexpected_pass"
    WRONG_ERROR = "wrong_error"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Entry:
    """One ``[[expect]]`` table. Selectors are tuples of patterns, any of which may match."""

    index: int
    case: tuple[str, ...]
    producer: tuple[str, ...]
    consumer: tuple[str, ...]
    check: tuple[str, ...]
    outcome: Outcome
    kind: str
    reason: str
    producer_version: SpecifierSet | None = None
    consumer_version: SpecifierSet | None = None
    error_class: str | None = None
    message: str | None = None
    issue: str | None = None
    added: datetime.date | None = None
    until: datetime.date | Version | None = None
    wide: str | None = None

    def names(self, cell: Cell) -> bool:
        """Whether the selectors match, whatever the versions."""
        if cell.is_production and not (self.consumer == ("-",) and self.check == (cell.check,)):
            return False  # `*` means any consumer, and a production has none
        return all(_matches(getattr(self, name), getattr(cell, name)) for name in SELECTORS)

    def selects(self, cell: Cell) -> bool:
        """Whether the entry speaks of this cell."""
        return (
            self.names(cell)
            and _in_range(self.producer_version, cell.producer_version)
            and _in_range(self.consumer_version, cell.consumer_version)
        )

    def describes(self, outcome: Outcome, error_class: str | None, message_normalised: str) -> bool:
        """Whether a failure is the one recorded here."""
        if outcome is not self.outcome:
            return False
        if self.error_class and self.error_class not in (error_class, (error_class or "").rpartition(".")[2]):
            return False
        return self.message is None or re.search(self.message, message_normalised) is not None

    def expired(self, today: datetime.date, tool: Version | None) -> bool:
        """Whether ``until`` is over: the day has passed, or this version of the project was to have repaired it."""
        if isinstance(self.until, Version):
            return tool is not None and tool >= self.until
        return self.until is not None and today > self.until

    def title(self) -> str:
        """``case/producer/consumer/check -> OUTCOME``, to name the entry in a message."""
        selector = "/".join(",".join(getattr(self, name)) for name in SELECTORS)
        return f"entry {self.index + 1} ({selector} -> {self.outcome})"


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) for pattern in patterns)


def _in_range(specifier: SpecifierSet | None, version: str) -> bool:
    if specifier is None:
        return True
    try:
        return specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:  # no TensorFlow, no version
        return False


@dataclass(frozen=True)
class Ledger:
    """The entries of one file, in its order."""

    entries: tuple[Entry, ...] = ()

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
    def parse(cls, text: str) -> Ledger:
        """Parse TOML text. Raises LedgerError with every problem found."""
        try:
            data = tomlkit.parse(text).unwrap()
        except TOMLKitError as error:
            raise LedgerError([f"not TOML: {error}"]) from error
        if data.get("schema") != SCHEMA:
            raise LedgerError([f"schema must be {SCHEMA}, not {data.get('schema')!r}"])
        tables = data.get("expect", [])
        unknown = sorted(set(data) - {"schema", "expect"})
        if unknown or not isinstance(tables, list):
            raise LedgerError([f"unknown key {key!r}" for key in unknown] or ["expect must be an array of tables: [[expect]]"])
        entries, problems = [], []
        for index, table in enumerate(tables):
            try:
                entries.append(_entry(index, table))
            except ValueError as error:
                problems.append(f"entry {index + 1}: {error}")
        if problems:
            raise LedgerError(problems)
        return cls(tuple(entries))

    def entry_for(self, cell: Cell) -> Entry | None:
        """The first entry that speaks of a cell (two are reported as an overlap)."""
        return next((entry for entry in self.entries if entry.selects(cell)), None)

    def verdict(self, cell: Cell, result: Result) -> tuple[Verdict, Entry | None]:
        """Judge one result."""
        entry = self.entry_for(cell)
        outcome = result.outcome
        if outcome is Outcome.NOT_RUN:
            return Verdict.NOT_JUDGED, entry
        if outcome is Outcome.NOT_APPLICABLE:
            return Verdict.AS_EXPECTED, None
        if entry is None or not (outcome.expectable or outcome is Outcome.PASS):
            return (Verdict.UNEXPECTED_FAIL if outcome.gate_failure else Verdict.AS_EXPECTED), entry
        if outcome is Outcome.PASS:
            return Verdict.UNEXPECTED_PASS, entry
        as_recorded = entry.describes(outcome, result.error_class, result.message_normalised)
        return (Verdict.AS_EXPECTED if as_recorded else Verdict.WRONG_ERROR), entry

    def judged(self, cell: Cell, result: Result) -> Result:
        """``result`` with ``expected`` and ``expectation`` filled in."""
        verdict, entry = self.verdict(cell, result)
        result.expected = None if verdict is Verdict.NOT_JUDGED else verdict is Verdict.AS_EXPECTED
        result.expectation = entry.index if entry else None
        return result


def _entry(index: int, table: Any) -> Entry:
    """One table as an Entry. Raises ValueError."""
    if not isinstance(table, dict):
        raise ValueError("is not a table")
    known = {f.name for f in fields(Entry)} - {"index"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r} (known: {', '.join(sorted(known))})")
    for name in ("outcome", "kind", "reason", "added"):
        if name not in table:
            raise ValueError(f"{name} is missing")
    values: dict[str, Any] = {name: _patterns(name, table.get(name)) for name in SELECTORS}
    for name in ("error_class", "message", "issue", "wide", "kind", "reason"):
        values[name] = _text(name, table[name]) if name in table else None
    values["outcome"] = _outcome(table["outcome"])
    if values["kind"] not in KINDS:
        raise ValueError(f"kind is {values['kind']!r}, not one of {', '.join(KINDS)}")
    if re.match(r"\W*(todo|fixme|xxx)\b", values["reason"], re.IGNORECASE):
        raise ValueError("the reason is still to be written")
    if values["outcome"] in NEEDS_ERROR and not (values["error_class"] or values["message"]):
        raise ValueError(f"{values['outcome']} needs error_class or message: any error would do otherwise")
    _check_regex(values["message"])
    for name in ("producer_version", "consumer_version"):
        values[name] = _specifier(name, table.get(name))
    values["added"] = _date("added", table["added"])
    values["until"] = _until(table.get("until"))
    return Entry(index=index, **values)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a text that says something")
    return value


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    patterns = tuple(value) if isinstance(value, list) else (value,)
    if not patterns or not all(isinstance(p, str) and re.fullmatch(r"[\w.+*-]+", p) for p in patterns):
        raise ValueError(f"{name} must be a name, a pattern with *, or a list of these, not {value!r}")
    return patterns


def _outcome(value: Any) -> Outcome:
    outcome = Outcome(value)
    if not outcome.expectable:
        raise ValueError(f"{outcome} cannot be expected")
    return outcome


def _check_regex(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"message is no regular expression: {error}") from error


def _specifier(name: str, value: Any) -> SpecifierSet | None:
    if value is None:
        return None
    try:
        return SpecifierSet(_text(name, value))
    except InvalidSpecifier as error:
        raise ValueError(f"{name}: {error}") from error


def _date(name: str, value: Any) -> datetime.date:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise ValueError(f"{name} must be a date (2025-01-31, without quotes), not {value!r}")
    return value


def _until(value: Any) -> datetime.date | Version | None:
    if value is None or not isinstance(value, str):
        return None if value is None else _date("until", value)
    try:
        return Version(value)
    except InvalidVersion as error:
        raise ValueError(f"until is neither a date nor a version: {error}") from error


@dataclass
class LedgerReport:
    """All that is wrong between plan, results and ledger. Every member is a list of JSON objects."""

    unexpected_fail: list[dict[str, Any]] = field(default_factory=list)
    unexpected_pass: list[dict[str, Any]] = field(default_factory=list)
    wrong_error: list[dict[str, Any]] = field(default_factory=list)
    dead_entry: list[dict[str, Any]] = field(default_factory=list)
    too_wide: list[dict[str, Any]] = field(default_factory=list)
    overlap: list[dict[str, Any]] = field(default_factory=list)
    expired: list[dict[str, Any]] = field(default_factory=list)
    listed_not_run: list[dict[str, Any]] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        """Whether the ledger itself needs work; listed entries that did not come to run are no reproach."""
        return bool(self.unexpected_pass or self.dead_entry or self.too_wide or self.overlap or self.expired)


def judge_entries(ledger: Ledger, plan: Plan, today: datetime.date, tool: Version | None = None) -> LedgerReport:
    """What can be said of the entries before anything runs: dead, too wide, overlapping, expired."""
    report = LedgerReport()
    askable = [cell for cell in plan if not (cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE)]
    owners: dict[str, list[Entry]] = {}
    for entry in ledger.entries:
        selected = [cell for cell in askable if entry.selects(cell)]
        fact = {"entry": entry.index, "title": entry.title(), "reason": entry.reason}
        # An entry for versions that are not here is not dead, it is for another machine.
        if not any(entry.names(cell) for cell in askable):
            report.dead_entry.append(fact)
        if len(selected) > MAX_CELLS and not entry.wide:
            report.too_wide.append({**fact, "cells": len(selected)})
        if entry.expired(today, tool):
            report.expired.append({**fact, "until": str(entry.until)})
        for cell in selected:
            owners.setdefault(cell.id, []).append(entry)
    report.overlap = [
        {"cell": cell_id, "entries": [entry.index for entry in entries], "titles": [entry.title() for entry in entries]}
        for cell_id, entries in owners.items()
        if len(entries) > 1
    ]
    return report


def judge(
    ledger: Ledger, plan: Plan, results: Mapping[str, Result], today: datetime.date, tool: Version | None = None
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
        if entry:
            wanted = {"outcome": str(entry.outcome), "error_class": entry.error_class, "message": entry.message}
            fact |= {"entry": entry.index, "wanted": wanted}
        getattr(report, verdict.value).append(fact)
    report.listed_not_run = [
        {"entry": index, "title": ledger.entries[index].title(), "cells": cells} for index, cells in sorted(not_run.items())
    ]
    return report
