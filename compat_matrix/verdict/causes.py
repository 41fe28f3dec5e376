"""The cause of a failure: from an entry that describes it already, from a file of rules, or from
the command line.

A file of rules (``matrix expect update --reasons FILE``) gives the causes of kinds of failures, for all cases::

    schema = 1

    [[rule]]
    name = "unknown-op"                     # stands in the entries made by it
    outcome = ["LOAD_ERROR", "CALL_ERROR"]  # optional: a name or a list; so consumer, producer,
                                            case, check (patterns with *)
    producer_version = ">=2"                # optional, PEP 440; so consumer_version
    error_class = "NotFoundError"           # optional
    message = "Op type not registered '(?P<op>\\w+)'"
    kind = "by_design"
    reason = "COMPAT-02: the op {op} is not known before TensorFlow {since}."
    issue = "https://..."                   # optional
    wide = "one cause"                      # optional

The first rule that fits makes the entry. The text of a named group is pinned in the entry's message
and replaces ``{group}`` in the reason. The texts of ``details["skew"]`` (kind, op, since, cause,
...) are used in the same way; a rule that uses one fits only if it exists. ``skew`` is also a
selector, by kind.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.verdict.entries import (
    KINDS,
    NEEDS_ERROR,
    Entry,
    LedgerError,
    check_regex,
    matches,
    read_patterns,
    read_range,
)
from compat_matrix.verdict.ranges import Range
from savedmodel_common import toml

SCHEMA = 1
MAX_PATTERN = 120  # characters of a message that are pinned
SELECTORS = ("case", "producer", "consumer", "check", "outcome", "skew")
FIELDS = {
    "name",
    *SELECTORS,
    "producer_version",
    "consumer_version",
    "error_class",
    "message",
    "kind",
    "reason",
    "issue",
    "wide",
}
_REQUEST = re.compile(r"^(the re-export, )?request [\w.-]+: ")
_GROUP = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True)
class Cause:
    """The fields of an entry beside its selectors.

    ``words`` distinguish failures without a pattern.
    """

    outcome: str
    error_class: str | None
    message: str | None
    facts: tuple[tuple[str, Any], ...] = ()
    words: str = ""

    @property
    def reason(self) -> str:
        """The reason; empty if none is given."""
        return str(dict(self.facts)["reason"]).strip()


@dataclass(frozen=True)
class Rule:
    """One ``[[rule]]`` table."""

    name: str
    selectors: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, Range]
    error_class: str | None
    message: str | None
    kind: str
    reason: str
    more: Mapping[str, str]

    def cause(self, cell: Cell, result: Result) -> Cause | None:
        """Return the cause of a failure by this rule, or None."""
        skew = result.skew_facts
        facts = {**vars(cell), "outcome": str(result.outcome), "skew": skew.get("kind", "")}
        if not all(matches(patterns, facts[name]) for name, patterns in self.selectors.items()):
            return None
        if not all(getattr(cell, name) in versions for name, versions in self.ranges.items()):
            return None
        short = (result.error_class or "").rpartition(".")[2]
        if self.error_class and self.error_class not in (short, result.error_class):
            return None
        match = re.search(self.message or "", result.message_normalised)
        if match is None:
            return None
        words = {**skew, **match.groupdict()}
        try:
            reason = self.reason.format_map(
                {name: value for name, value in words.items() if value is not None}
            )
        except KeyError:
            return None
        pattern = pinned(self.message, match.groupdict()) if self.message else None
        known = {"kind": self.kind, "reason": reason, **self.more, "rule": self.name}
        return Cause(str(result.outcome), self.error_class, pattern, tuple(known.items()))


def pinned(pattern: str, found: Mapping[str, str | None]) -> str:
    """Return ``pattern`` with each named group replaced by the text that it matched."""
    out, rest = "", pattern
    while match := _GROUP.search(rest):
        end = _closing(rest, match.start())
        out += rest[: match.start()] + literal(found[match[1]] or "")
        rest = rest[end:]
    return out + rest


def _closing(pattern: str, start: int) -> int:
    """Return the position behind the parenthesis that closes the one at ``start``."""
    depth, position, in_class = 0, start, False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
            if not depth:
                break
        position += 1
    return position + 1


def literal(text: str) -> str:
    """Return a regular expression that matches ``text``; it is more readable than that of
    ``re.escape``.
    """
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Read the rules of a file. Raises LedgerError with every problem found."""
    try:
        data = toml.read(path)
    except (OSError, ValueError) as error:
        raise LedgerError([f"{path}: {error}"]) from error
    if (
        data.get("schema") != SCHEMA
        or set(data) - {"schema", "rule"}
        or not isinstance(data.get("rule", []), list)
    ):
        raise LedgerError([f"{path}: schema = {SCHEMA} and [[rule]] tables are expected"])
    rules, problems = [], []
    for number, table in enumerate(data.get("rule", []), 1):
        try:
            rules.append(_rule(table))
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else error
            problems.append(f"{path}: rule {number}: {what}")
    if problems:
        raise LedgerError(problems)
    return tuple(rules)


def _rule(table: Mapping[str, Any]) -> Rule:
    unknown = sorted(set(table) - FIELDS)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r} (known: {', '.join(sorted(FIELDS))})")
    if table["kind"] not in KINDS:
        raise ValueError(f"kind is {table['kind']!r}, not one of {', '.join(KINDS)}")
    check_regex(table.get("message"))
    if not (table.get("message") or table.get("error_class") or table.get("outcome")):
        raise ValueError("needs message, error_class or outcome: it would fit every failure")
    names = [name for name in SELECTORS if name in table]
    ranges = {
        name: read_range(name, table[name])
        for name in ("producer_version", "consumer_version")
        if name in table
    }
    return Rule(
        name=str(table["name"]),
        selectors={name: read_patterns(name, table[name]) for name in names},
        ranges={name: versions for name, versions in ranges.items() if versions},
        error_class=table.get("error_class"),
        message=table.get("message"),
        kind=table["kind"],
        reason=str(table["reason"]),
        more={name: str(table[name]) for name in ("issue", "wide") if name in table},
    )


@dataclass(frozen=True)
class Causes:
    """The sources of causes, in order of priority: entries about the same case, rules, the reason
    given for all others.
    """

    entries: Sequence[Entry]
    rules: Sequence[Rule]
    given: Mapping[str, Any]  # kind, reason, added; without a reason, "reason" is ""

    def of(self, cell: Cell, result: Result) -> Cause:
        """Return the cause of a failure; if no source knows it, a cause without a reason."""
        for entry in self.entries:
            about_it = (
                entry.message
                and matches(entry.case, cell.case)
                and cell.is_production == (entry.consumer == ("-",))
            )
            if about_it and entry.describes(
                result.outcome, result.error_class, result.message_normalised
            ):
                return Cause(
                    str(entry.outcome),
                    entry.error_class,
                    entry.message,
                    tuple(facts_of(entry).items()),
                )
        for rule in self.rules:
            cause = rule.cause(cell, result)
            if cause:
                return Cause(
                    cause.outcome,
                    cause.error_class,
                    cause.message,
                    (*cause.facts, ("added", self.given["added"])),
                )
        return self._given(result)

    def _given(self, result: Result) -> Cause:
        short = (result.error_class or "").rpartition(".")[2] or None
        words = ""
        if result.outcome in NEEDS_ERROR:
            core = core_message(result)[:MAX_PATTERN]
            words = " ".join([*core.split()[:3], *re.findall(r"'[^']*'", core)])
        return Cause(str(result.outcome), short, None, tuple(self.given.items()), words or "-")


def core_message(result: Result) -> str:
    """Return the message without the name of the request."""
    return _REQUEST.sub("", result.message_normalised)


def facts_of(entry: Entry) -> dict[str, Any]:
    """Return the fields that entries made from ``entry`` take over."""
    until = (
        entry.until
        if entry.until is None or not hasattr(entry.until, "release")
        else str(entry.until)
    )
    facts = {
        "kind": entry.kind,
        "reason": entry.reason,
        "issue": entry.issue,
        "added": entry.added,
        "until": until,
    }
    facts |= {"wide": entry.wide, "rule": entry.rule}
    return {name: value for name, value in facts.items() if value is not None}


def unexplained(failures: Iterable[tuple[Cause, Cell, Result]]) -> list[str]:
    """Return one line for each kind of failure without a reason: the number, the failure, and an
    example cell.
    """
    kinds: dict[tuple[str, str, str], list[tuple[Cell, Result]]] = {}
    for cause, cell, result in failures:
        kinds.setdefault((cause.outcome, cause.error_class or "", cause.words), []).append(
            (cell, result)
        )
    lines = []
    for (outcome, error_class, _), members in sorted(
        kinds.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        who = ", ".join(sorted({cell.consumer for cell, _ in members}))
        cell, result = members[0]
        lines.append(
            f"{len(members)} x {outcome} {error_class} ({who}): {core_message(result)[:200]} "
            f" [{cell.id}]"
        )
    return lines
