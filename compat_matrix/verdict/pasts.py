"""The comparison of runs of one plan in several pasts of their worker processes.

Pure functions of plan and results.

A result must not depend on what the process did before. Each past is compared with the plain one,
cell by cell: outcome, error class, normalised message, answers, and the bytes of exports for
writers that are reproducible. A difference is red unless an entry of the ledger expects both
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compat_matrix.cells.plan import Plan
from compat_matrix.cells.results import Result, one_line
from savedmodel_common.exit_codes import ExitCode

EXPORTS = "exports"  # of the details of a result: name of an export -> digest of its bytes
SOURCE = (
    "source"  # among these: the model that was read; a re-export of other bytes is not compared
)
OUTCOME, ERROR_CLASS, MESSAGE, ANSWERS = "outcome", "error_class", "message", "answers"
_SHOWN = 300  # characters of a message
_LISTED = 5  # requests or exports


@dataclass(frozen=True)
class Difference:
    """A cell whose result depends on the past.

    ``plain`` and ``other`` are what was seen; ``names``: requests or exports.
    """

    cell: str
    past: int
    differs: str
    plain: str
    other: str
    expected: bool
    names: tuple[str, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "names": list(self.names), "evidence": dict(self.evidence)}


def compared(plan: Plan, plain: Mapping[str, Result], other: Mapping[str, Result]) -> list[str]:
    """Return the ids of the cells that have a result in both pasts.

    A cell that compares two others is left out.
    """
    ids = (cell.id for cell in plan if not cell.sides)
    return [one for one in ids if _is_observed(plain.get(one)) and _is_observed(other.get(one))]


def _is_observed(result: Result | None) -> bool:
    return result is not None and result.outcome.observable


def differences(
    plan: Plan,
    plain: Mapping[str, Result],
    other: Mapping[str, Result],
    past: int,
    folders: tuple[str, str],
) -> Iterator[Difference]:
    """Yield the cells whose results differ in a past.

    ``folders``: those of the two runs, for the paths of evidence.
    """
    for cell in compared(plan, plain, other):
        sides = plain[cell], other[cell]
        differs, names = _differs(*sides)
        if differs:
            expected = all(result.expected and result.expectation is not None for result in sides)
            told = [_told(result, differs) for result in sides]
            kept = {
                folder: f"{folder}/evidence/{cell}"
                for folder, result in zip(folders, sides)
                if result.evidence
            }
            yield Difference(cell, past, differs, told[0], told[1], expected, names, kept)


def exit_code(pairs: int, found: list[Difference]) -> ExitCode:
    """Return the exit code of a comparison of ``pairs`` results."""
    if any(not one.expected for one in found):
        return ExitCode.UNEXPECTED
    return ExitCode.AS_EXPECTED if pairs else ExitCode.INCOMPLETE


def _differs(plain: Result, other: Result) -> tuple[str, tuple[str, ...]]:
    """Return what differs between two results of a cell, and the names of the requests or exports;
    "" if nothing does.
    """
    for name in (OUTCOME, ERROR_CLASS):
        if getattr(plain, name) != getattr(other, name):
            return name, ()
    if plain.message_normalised != other.message_normalised:
        return MESSAGE, ()
    answers = _unlike(plain.details.get(ANSWERS, {}), other.details.get(ANSWERS, {}))
    if answers:
        return ANSWERS, answers
    exports = [result.details.get(EXPORTS, {}) for result in (plain, other)]
    if exports[0].get(SOURCE) != exports[1].get(SOURCE):
        return "", ()
    unlike = _unlike(*exports)
    return (EXPORTS, unlike) if unlike else ("", ())


def _unlike(plain: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in sorted({*plain, *other}) if plain.get(name) != other.get(name))


def _told(result: Result, differs: str) -> str:
    """Return a result in one line: its outcome and error, or the digests that differ."""
    if differs in (ANSWERS, EXPORTS):
        digests = [
            f"{name} {digest}"
            for name, digest in sorted(result.details.get(differs, {}).items())
            if name != SOURCE
        ]
        more = [f"{len(digests) - _LISTED} more"] if len(digests) > _LISTED else []
        return ", ".join([*digests[:_LISTED], *more])
    return one_line(
        " ".join(filter(None, (str(result.outcome), result.error_class, result.message))), _SHOWN
    )
