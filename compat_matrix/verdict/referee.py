"""Who is alone: TensorFlow releases give different answers, and the evaluator agrees with some.

Pure functions of results of the check ``values`` about one artifact. The evaluator computes with
NumPy, so it shares no kernel with any release. Two answers agree if their digests are equal, or if
both are within the tolerance of the recorded answer. An example: 2.20.0 answers a request as it was
recorded, 2.21.0 does not, and the evaluator does. Then 2.21.0 is alone.

If all releases agree and the evaluator does not, its own cell fails, so there is nothing to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Result
from reference_impl.errors import listed

EVALUATOR, VALUES = "evaluator", "values"  # the consumer that judges, and the check with answers
_LISTED = 4  # releases named in a sentence


@dataclass(frozen=True)
class Division:
    """The releases that answer a request as the evaluator does, and those that do not."""

    request: str
    agree: tuple[str, ...]
    alone: tuple[str, ...]

    def __str__(self) -> str:
        is_or_are = "is" if len(self.alone) == 1 else "are"
        return (
            f"{listed(self.agree, _LISTED)} and the evaluator agree;"
            f" {listed(self.alone, _LISTED)} {is_or_are} alone"
        )


def division(releases: Mapping[str, Result], evaluator: Result | None) -> Division | None:
    """Return how the evaluator divides the results of several releases, by the first request whose
    answers differ.

    None if the answers are alike, or if the evaluator agrees with no release.
    """
    if evaluator is None:
        return None
    for request, theirs in _answers(evaluator).items():
        found = {name: _answers(result).get(request) for name, result in releases.items()}
        answered = {name: answer for name, answer in found.items() if answer is not None}
        agree = _agreeing(answered, theirs)
        if agree and len(agree) < len(answered):
            return Division(request, agree, tuple(sorted(set(answered) - set(agree))))
    return None


def divisions(plan: Plan, results: Mapping[str, Result]) -> list[dict[str, Any]]:
    """Return the artifacts about which the releases of a run are divided, for ``summary.json``."""
    judges = evaluated(plan, results)
    asked: dict[tuple[str, str], dict[str, Result]] = {}
    for cell in plan:
        if _has_answers(cell, results) and cell.consumer != EVALUATOR:
            releases = asked.setdefault((cell.artifact_id, cell.consumer), {})
            releases[cell.consumer_version] = results[cell.id]
    out = []
    for (artifact, consumer), releases in asked.items():
        found = division(releases, judges.get(artifact)) if len(releases) > 1 else None
        if found is not None:
            out.append(
                {
                    "artifact": artifact,
                    "consumer": consumer,
                    "request": found.request,
                    "agree": list(found.agree),
                    "alone": list(found.alone),
                    "words": str(found),
                }
            )
    return out


def evaluated(plan: Iterable[Cell], results: Mapping[str, Result]) -> dict[str, Result]:
    """Return artifact id -> what the evaluator answers about it."""
    return {
        cell.artifact_id: results[cell.id]
        for cell in plan
        if cell.consumer == EVALUATOR and _has_answers(cell, results)
    }


def _has_answers(cell: Cell, results: Mapping[str, Result]) -> bool:
    return cell.check == VALUES and cell.id in results and bool(_answers(results[cell.id]))


@dataclass(frozen=True)
class _Answer:
    digest: str
    as_recorded: bool  # within the tolerance


def _answers(result: Result) -> dict[str, _Answer]:
    """Return request -> answer, without requests that were refused."""
    failed = result.details.get("failed") or {}
    return {
        request: _Answer(digest, request not in failed)
        for request, digest in (result.details.get("answers") or {}).items()
        if failed.get(request, {}).get("outcome", str(Outcome.FAIL_VALUE))
        == str(Outcome.FAIL_VALUE)
    }


def _agreeing(answered: Mapping[str, _Answer], theirs: _Answer) -> tuple[str, ...]:
    """Return the releases that answer as the evaluator does."""
    if theirs.as_recorded and not all(answer.as_recorded for answer in answered.values()):
        return tuple(sorted(name for name, answer in answered.items() if answer.as_recorded))
    return tuple(sorted(name for name, answer in answered.items() if answer == theirs))
