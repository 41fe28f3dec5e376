"""Entries of the ledger, one per ``[[expect]]`` table: their parsing, validation and matching with
cells.
"""

from __future__ import annotations

import datetime
import fnmatch
import functools
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from packaging.specifiers import InvalidSpecifier
from packaging.version import InvalidVersion, Version

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import BOTH, NO_CONSUMER, PRODUCE, Cell
from compat_matrix.verdict.ranges import Range

KINDS = ("bug", "by_design", "unsupported_upstream", "environment")
MAX_TOLD = 5  # names in a title
SELECTORS = ("case", "producer", "consumer", "check")
# An error may have many causes; an entry that does not name one could never be contradicted.
NEEDS_ERROR = (Outcome.LOAD_ERROR, Outcome.CALL_ERROR, Outcome.REJECTED, Outcome.DISAGREE)


class LedgerError(ValueError):
    """The expectation file cannot be used. ``problems`` holds a line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Entry:
    """One ``[[expect]]`` table.

    A selector is a tuple of patterns; it matches if one of them does.

    ``outcome`` is the first of its outcomes, ``others`` are the rest, since one cause may have
    several outcomes.
    """

    index: int
    case: tuple[str, ...]
    producer: tuple[str, ...]
    consumer: tuple[str, ...]
    check: tuple[str, ...]
    outcome: Outcome
    kind: str
    reason: str
    producer_version: Range | None = None
    consumer_version: Range | None = None
    error_class: str | None = None
    message: str | None = None
    issue: str | None = None
    added: datetime.date | None = None
    until: datetime.date | Version | None = None
    wide: str | None = None
    others: tuple[Outcome, ...] = ()
    rule: str | None = None  # older files have it; nothing reads it

    @property
    def outcomes(self) -> str | list[str]:
        """The outcomes as written in the file."""
        return (
            [str(outcome) for outcome in (self.outcome, *self.others)]
            if self.others
            else str(self.outcome)
        )

    def names(self, cell: Cell) -> bool:
        """Return whether the selectors match, ignoring versions."""
        return self.names_question(cell.case, cell.producer, cell.consumer, cell.check)

    def names_question(self, case: str, producer: str, consumer: str, check: str) -> bool:
        """Return whether the selectors match these names."""
        if check == PRODUCE and not (self.consumer == (NO_CONSUMER,) and self.check == (PRODUCE,)):
            return False  # `*` means any consumer, and a production does not have one
        if (BOTH in consumer) is not (self.outcome is Outcome.DISAGREE):
            return False  # `*` does not mean a pair of consumers
        return (
            matches(self.check, check)
            and self.asks(consumer)
            and matches(self.producer, producer)
            and matches(self.case, case)
        )

    def asks(self, consumer: str) -> bool:
        """Return whether the entry selects a consumer. A pattern matches only our programs;
        servers, plug-ins and "-" must be named."""
        by_name = consumer not in CONSUMERS and BOTH not in consumer
        return consumer in self.consumer or (not by_name and matches(self.consumer, consumer))

    def of_producer(self, version: str) -> bool:
        """Return whether the entry selects a producer's version."""
        return self.producer_version is None or version in self.producer_version

    def of_consumer(self, version: str) -> bool:
        """Return whether the entry selects a consumer's version."""
        return self.consumer_version is None or version in self.consumer_version

    def selects(self, cell: Cell) -> bool:
        """Return whether the entry selects this cell."""
        return (
            self.names(cell)
            and self.of_producer(cell.producer_version)
            and self.of_consumer(cell.consumer_version)
        )

    def describes(self, outcome: Outcome, error_class: str | None, message_normalised: str) -> bool:
        """Return whether a failure is the one recorded here."""
        if outcome not in (self.outcome, *self.others):
            return False
        if self.error_class and self.error_class not in (
            error_class,
            (error_class or "").rpartition(".")[2],
        ):
            return False
        return self.message is None or re.search(self.message, message_normalised) is not None

    def expired(self, today: datetime.date, tool: Version | None) -> bool:
        """Return whether the entry has expired: the day ``until`` has passed, or the project has
        reached the version ``until``."""
        if isinstance(self.until, Version):
            return tool is not None and tool >= self.until
        return self.until is not None and today > self.until

    def title(self) -> str:
        """``case/producer/consumer/check -> OUTCOME``, to name the entry in a message."""
        selector = "/".join(_some(getattr(self, name)) for name in SELECTORS)
        return f"entry {self.index + 1} ({selector} -> {_some((self.outcome, *self.others))})"


def _some(names: Sequence[str]) -> str:
    return ",".join(
        names
        if len(names) <= MAX_TOLD
        else [*names[: MAX_TOLD - 1], f"{len(names) - MAX_TOLD + 1} more"]
    )


def matches(patterns: tuple[str, ...], text: str) -> bool:
    """Return whether one of ``patterns`` (names, ``*`` for anything) matches ``text``."""
    return text in patterns or patterns == ("*",) or _any_of(patterns).fullmatch(text) is not None


@functools.cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # Linear in the number of `*`, without backtracking; `read_patterns` refuses all other signs of
    # fnmatch.
    return re.compile("|".join(map(fnmatch.translate, patterns)))


def read_entry(index: int, table: Any) -> Entry:
    """Return one table as an Entry. Raises ValueError."""
    if not isinstance(table, dict):
        raise ValueError("is not a table")
    known = {f.name for f in fields(Entry)} - {"index", "others"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r} (known: {', '.join(sorted(known))})")
    for name in ("outcome", "kind", "reason", "added"):
        if name not in table:
            raise ValueError(f"{name} is missing")
    values: dict[str, Any] = {name: read_patterns(name, table.get(name)) for name in SELECTORS}
    for name in ("error_class", "message", "issue", "wide", "rule", "kind", "reason"):
        values[name] = _text(name, table[name]) if name in table else None
    values["outcome"], *values["others"] = _outcomes(table["outcome"])
    values["others"] = tuple(values["others"])
    if values["kind"] not in KINDS:
        raise ValueError(f"kind is {values['kind']!r}, not one of {', '.join(KINDS)}")
    if re.match(r"\W*(todo|fixme|xxx)\b", values["reason"], re.IGNORECASE):
        raise ValueError("the reason is still to be written")
    if {values["outcome"], *values["others"]} & set(NEEDS_ERROR) and not (
        values["error_class"] or values["message"]
    ):
        raise ValueError(
            f"{values['outcome']} needs error_class or message: any error would do otherwise"
        )
    if values["outcome"] is Outcome.PASS and not values["issue"]:
        raise ValueError(
            "outcome PASS contradicts a prediction of the op history: it needs an issue that"
            " says why"
        )
    check_regex(values["message"])
    for name in ("producer_version", "consumer_version"):
        values[name] = read_range(name, table.get(name))
    values["added"] = _date("added", table["added"])
    values["until"] = _until(table.get("until"))
    return Entry(index=index, **values)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a text that says something")
    return value


def read_patterns(name: str, value: Any) -> tuple[str, ...]:
    patterns = tuple(value) if isinstance(value, list) else (value,)
    if not patterns or not all(
        isinstance(p, str) and re.fullmatch(r"[\w.+*-]+", p) for p in patterns
    ):
        raise ValueError(
            f"{name} must be a name, a pattern with *, or a list of these, not {value!r}"
        )
    return patterns


def _outcome(value: Any) -> Outcome:
    outcome = Outcome(value)
    if not (outcome.expectable or outcome is Outcome.PASS):
        raise ValueError(f"{outcome} cannot be expected")
    return outcome


def _outcomes(value: Any) -> list[Outcome]:
    found = [_outcome(item) for item in (value if isinstance(value, list) else [value])]
    alone = {Outcome.PASS, Outcome.DISAGREE} & set(found)
    if not found or (len(found) > 1 and (alone or len(set(found)) < len(found))):
        raise ValueError(
            f"outcome must be one outcome, or a list of different failures, not {value!r}"
        )
    return found


def check_regex(pattern: str | None) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of syntax whose meaning will change
            re.compile(pattern or "")
    except (re.error, Warning, RecursionError, OverflowError) as error:
        raise ValueError(f"message is not a regular expression: {error}") from error


def read_range(name: str, value: Any) -> Range | None:
    if value is None:
        return None
    try:
        return Range(_text(name, value))
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
