"""The entries that new failures become: one for each consumer and error, with lists of cases,
producers and checks.

An entry selects exactly the failures that were seen. A question that fails for every version asked
gets an entry without versions. One that passes for some is pinned to the versions that fail, as in
``consumer_version = "==2.8.4"``: whether the versions between them fail too is for a person to say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.verdict.blocks import table_text
from compat_matrix.verdict.entries import NEEDS_ERROR
from compat_matrix.verdict.ledger import MAX_QUESTIONS, Names, names_of
from compat_matrix.verdict.ranges import exactly

MIN_PATTERN = 10  # characters; a shorter pattern adds nothing to an error class
MAX_PATTERN = 120  # characters of a message that are pinned
MAX_TOLD = 200  # characters of a message in a refusal
WIDE = "one cause"
_REQUEST = re.compile(r"^(the re-export, )?request [\w.-]+: ")

Failure = tuple[Cell, Result]
Versions = tuple[str, str]  # of producer and consumer
ANY = ("", "")  # whatever the versions


class UpdateRefused(ValueError):
    """The results cannot become expectations; the message says why."""


@dataclass(frozen=True)
class Selection:
    """The cells of one entry. A version of ``""`` stands for all of them."""

    consumer: str
    cases: tuple[str, ...]
    producers: tuple[str, ...]
    checks: tuple[str, ...]
    versions: Versions

    @property
    def questions(self) -> int:
        """The number of questions: cells, whatever their versions."""
        return len(self.cases) * len(self.producers) * len(self.checks)


class Observed:
    """The versions for which each question has an answer, or an entry that stays."""

    def __init__(self, cells: Iterable[Cell], results: Mapping[str, Result]) -> None:
        self._versions: dict[Names, set[Versions]] = {}
        self.add(
            cell
            for cell in cells
            if cell.id in results and results[cell.id].outcome is not Outcome.NOT_RUN
        )

    def add(self, cells: Iterable[Cell]) -> None:
        """Add cells, such as those that an entry selects which stays."""
        for cell in cells:
            self._versions.setdefault(names_of(cell), set()).add(_versions_of(cell))

    def selections(self, failing: Iterable[Cell]) -> list[Selection]:
        """Return few selections that hold ``failing`` and nothing else of what was observed."""
        failed: dict[Names, list[Versions]] = {}
        for cell in failing:
            failed.setdefault(names_of(cell), []).append(_versions_of(cell))
        found = []
        for names, versions in failed.items():
            others = self._versions.get(names, set()) - set(versions)
            case, producer, consumer, check = names
            found += [
                Selection(consumer, (case,), (producer,), (check,), pin)
                for pin in _pins(versions, others)
            ]
        for axis in ("producers", "checks", "cases"):
            found = _joined(found, axis)
        return found


def _versions_of(cell: Cell) -> Versions:
    return cell.producer_version, cell.consumer_version


def _pins(failing: Sequence[Versions], others: Iterable[Versions]) -> list[Versions]:
    """Return the versions that hold ``failing`` and none of ``others``.

    Example: ``("", "2.8.4")`` if TensorFlow 2.8.4 alone fails, for every writer.
    """
    others = list(others)
    if not others:
        return [ANY]
    pins: list[Versions] = []
    passing_readers = {reader for _, reader in others}
    for writer, reader in failing:
        pins.append((writer, reader) if reader in passing_readers else ("", reader))
    return list(dict.fromkeys(pins))


def _joined(selections: Iterable[Selection], axis: str) -> list[Selection]:
    """Join selections that differ in one list of names only: the result selects the same cells."""
    groups: dict[Selection, list[str]] = {}
    for one in selections:
        groups.setdefault(_with(one, axis, ()), []).extend(getattr(one, axis))
    return [_with(rest, axis, tuple(names)) for rest, names in groups.items()]


def _with(selection: Selection, axis: str, names: tuple[str, ...]) -> Selection:
    changed: dict[str, Any] = {axis: names}
    return replace(selection, **changed)


def entries_text(
    facts: Mapping[str, Any], failing: Iterable[Cell], observed: Observed
) -> list[str]:
    """Return the text of entries with ``facts`` (error, kind, reason, ...) for cells that failed.

    The cells are counted as observed from then on, so that no later entry selects them.
    """
    failing = list(failing)
    tables = []
    for selection in observed.selections(failing):
        table = {**facts, **_selectors(selection)}
        if selection.questions > MAX_QUESTIONS:
            table.setdefault("wide", WIDE)
        tables.append(table_text(table))
    observed.add(failing)
    return tables


def _selectors(selection: Selection) -> dict[str, Any]:
    producer_version, consumer_version = map(exactly, selection.versions)
    found = {
        "case": _one_or_list(selection.cases),
        "producer": _one_or_list(selection.producers),
        "producer_version": producer_version,
        "consumer": selection.consumer,
        "consumer_version": consumer_version,
        "check": _one_or_list(selection.checks),
    }
    return {name: value for name, value in found.items() if value is not None}


def _one_or_list(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def error_facts(failures: Sequence[Failure]) -> dict[str, Any]:
    """Return the outcome, the error class and the part of the message that all of ``failures``
    share.

    Raises UpdateRefused if an error has neither class nor message.
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


def by_error(failures: Iterable[Failure]) -> list[tuple[dict[str, Any], list[Failure]]]:
    """Group failures by what an entry pins of their error; the largest group comes first."""
    groups: dict[tuple[tuple[str, Any], ...], list[Failure]] = {}
    for failure in failures:
        groups.setdefault(tuple(error_facts([failure]).items()), []).append(failure)
    largest_first = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(dict(facts), members) for facts, members in largest_first]


def unexplained(facts: Mapping[str, Any], members: Sequence[Failure]) -> str:
    """Return the line that asks for the reason of a group: its size, its error, an example."""
    consumers = ", ".join(sorted({cell.consumer for cell, _ in members}))
    cell, result = members[0]
    error = f"{facts['outcome']} {facts.get('error_class', '')}"
    return f"{len(members)} x {error} ({consumers}): {core_message(result)[:MAX_TOLD]}  [{cell.id}]"


def core_message(result: Result) -> str:
    """Return the message without the name of the request."""
    return _REQUEST.sub("", result.message_normalised)


def literal(text: str) -> str:
    """Return a regular expression that matches ``text``; it is more readable than that of
    ``re.escape``.
    """
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
