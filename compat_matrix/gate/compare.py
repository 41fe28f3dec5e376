"""The verdict of a gate: the class and cause of every pair, and the exit code.

Pure, except for the files that ``measure`` reads.

The class of a pair is the first of these that applies:

* ``harness_error``: the harness or the machine failed on one side, so there is no verdict on the
  pair,
* ``unfinished``: the run ended before one side was executed,
* ``unstable``: one side gave two outcomes in two processes, so the pair cannot be called alike or
  changed,
* ``vanished``: the baseline was observed, the candidate was not (also a regression);
  ``newly_covered``: the reverse,
* ``regressed``: passed, fails now; ``fixed``: failed, passes now; ``changed_error``: fails with
  another error; ``still_failing``:
  fails with the same error,
* ``drifted``: both pass, but the answers differ,
* ``same``.

Regressed, vanished and unstable pairs block, and so does a drift beyond the tolerance of the case
(bit-exact by default). The same tolerance applies when a reader's answers are compared with the
recorded ones, and a new writer of the artifact must not get a larger one. A drift within the
tolerance blocks only with ``fail_on_drift``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.gate.coverage import coverage
from compat_matrix.gate.drift import MAX_REQUESTS, Drift
from compat_matrix.gate.pairs import NOT_PLANNED, ROLES, Pair, Side
from compat_matrix.report.gate_words import WITHOUT_RESULT, side_words
from compat_matrix.verdict import referee
from compat_matrix.verdict.error_words import error_words
from compat_matrix.verdict.prediction import predicted
from savedmodel_common.exit_codes import ExitCode

SCHEMA = 1
SAME, UNSTABLE = "same", "unstable"
UNCHANGED = ("still_failing", SAME)
KINDS = (
    *(
        "regressed",
        "vanished",
        "drifted",
        "changed_error",
        "fixed",
        "newly_covered",
        "harness_error",
        "unfinished",
    ),
    *(UNSTABLE, *UNCHANGED),
)
MAX_MESSAGE = 300  # characters of one side's message
_NOTHING = {"outcome": None, "error_class": None, "skew": None, "skew_text": None, "replay": ""}
ROLE_OF_SIDE = ("baseline", "candidate")
_ONE_SIDED = {"vanished", "newly_covered"}  # one side was not observed, so nothing was compared

Fact = dict[str, Any]
Measure = Callable[[Pair], list[Drift]]


def no_measure(_: Pair) -> list[Drift]:
    """Report no drift: a ``measure`` for callers that do not compare answers."""
    return []


def classify(
    pair: Pair, measure: Measure = no_measure, labels: Sequence[str] = ROLE_OF_SIDE
) -> Fact | None:
    """Return the fact about a pair; None if both sides were left out on purpose.

    ``labels``: the names of the two sides in sentences.
    """
    a, b = pair.baseline, pair.candidate
    seen_a, seen_b = a is not None and a.observed, b is not None and b.observed
    drift: list[Drift] = []
    if any(side and side.result and side.result.outcome.harness_failure for side in (a, b)):
        kind = "harness_error"
    elif any(side and side.unfinished for side in (a, b)):
        kind = "unfinished"
    elif any(side and side.result and side.result.outcome is Outcome.UNSTABLE for side in (a, b)):
        kind = UNSTABLE
    elif not seen_a or not seen_b:
        if not seen_a and not seen_b:
            return None
        kind = "vanished" if seen_a else "newly_covered"
    else:
        kind, drift = _both_observed(pair, measure)
    return _fact(pair, kind, drift, _alone(pair, labels))


def _alone(pair: Pair, labels: Sequence[str]) -> str:
    """Return which side is alone, if the evaluator agrees with the other; "" otherwise."""
    one, other = pair.baseline, pair.candidate
    if one is None or other is None or one.result is None or other.result is None:
        return ""
    found = referee.division(dict(zip(labels, (one.result, other.result))), pair.evaluator)
    return str(found) if found else ""


def _both_observed(pair: Pair, measure: Measure) -> tuple[str, list[Drift]]:
    passed = [
        side.result.outcome is Outcome.PASS
        for side in (pair.baseline, pair.candidate)
        if side and side.result
    ]
    if passed == [True, True]:
        drift = measure(pair)
        return ("drifted" if drift else SAME), drift
    if passed == [False, False]:
        return ("changed_error" if _other_words(pair) else "still_failing"), []
    return ("regressed" if passed[0] else "fixed"), []


def _other_words(pair: Pair) -> str:
    """Return in words how the errors of two failures differ; empty if they are the same error."""
    (one, before), (other, now) = [
        _error(side) for side in (pair.baseline, pair.candidate) if side and side.result
    ]
    if one != other:
        return f"{one} before, {other} now"
    lost, new = (" ".join(sorted(a - b)) for a, b in ((before, now), (now, before)))
    parts = [
        f"{word} {text}" for word, text in (("no longer says", lost), ("now says", new)) if text
    ]
    return f"{one}: the message {', '.join(parts)}" if parts else ""


def _error(side: Side) -> tuple[str, set[str]]:
    """Return the outcome and class of a failure, and the words of its message that are equal in two
    runs of one failure.
    """
    assert side.result is not None
    return error_words(side.result, side.cell.consumer_version)


def _fact(pair: Pair, kind: str, drift: list[Drift], alone: str) -> Fact:
    cell = pair.cell
    cause = _other_words(pair) if kind == "changed_error" else None
    sides = {"baseline": _side(pair.baseline), "candidate": _side(pair.candidate)}
    if cause is None:
        cause = _cause(kind, sides, drift)
    return {
        "pair": pair.name,
        "role": pair.role,
        "kind": kind,
        "case": cell.case,
        "producer": cell.producer,
        "consumer": cell.consumer,
        "check": cell.check,
        **sides,
        "known": _known(pair.candidate, kind),
        "cause": cause,
        "alone": alone,
        "drift": drift[:MAX_REQUESTS],
        "drifted_requests": len(drift),
        "beyond": any(not item["within"] for item in drift),
        "seconds": sum(
            (
                pair.candidate.result.timings if pair.candidate and pair.candidate.result else {}
            ).values()
        ),
    }


def _side(side: Side | None) -> Fact:
    """Return one side for a report.

    ``outcome`` is None if nothing was observed; ``message`` says why.
    """
    if side is None or not side.observed or side.result is None:
        cell = side.cell.id if side else None
        why = side.reason if side else NOT_PLANNED
        return {**_NOTHING, "cell": cell, "message": why[:MAX_MESSAGE]}
    result = side.result
    return {
        "cell": result.cell,
        "outcome": str(result.outcome),
        "error_class": result.error_class,
        "message": result.cause[:MAX_MESSAGE],
        "skew": result.skew_cause or None,
        "skew_text": result.skew or None,
        "replay": result.replay,
    }


def _known(candidate: Side | None, kind: str) -> bool:
    """Return whether the ledger expects the candidate's failure, or its absence was declared.

    A regression that only the op history predicts is still a regression: it needs an entry in the
    ledger.
    """
    if candidate is None or kind not in ("regressed", "vanished", "changed_error", "still_failing"):
        return False
    if kind == "vanished":
        declared = (
            candidate.cell.decided and candidate.cell.decided.outcome is Outcome.NOT_APPLICABLE
        )
        return bool(
            declared
            or (candidate.production and candidate.production.expected and candidate.not_made)
        )
    result = candidate.result
    listed = result is not None and result.expectation is not None
    return bool(
        result and result.expected and (kind != "regressed" or listed or not predicted(result))
    )


def _cause(kind: str, sides: dict[str, Fact], drift: list[Drift]) -> str:
    """Return in words what pairs with the same cause have in common."""
    if kind == SAME:
        return ""
    if kind == "drifted":
        return str(drift[0]["message"])
    if kind == UNSTABLE:
        return next(
            side_words(side) for side in sides.values() if side["outcome"] == Outcome.UNSTABLE.value
        )
    side = sides["baseline"] if kind == "fixed" else sides["candidate"]
    return side_words(side)


def compare(
    pairs: Sequence[Pair],
    sides: Sequence[Mapping[str, str]],
    measure: Measure = no_measure,
    *,
    fail_on_drift: bool = False,
    accept_known: bool = False,
) -> tuple[list[Fact], Fact]:
    """Return the facts about all pairs and the verdict: the content of ``gate.json``.

    Args:
      pairs: of ``gate.pairs``.
      sides: baseline and candidate: ``label`` as in cell ids, and ``spec`` as the user gave it.
      measure: returns the answers of a pair that differ.
      fail_on_drift: a drift within the tolerance of the case blocks too.
      accept_known: a regression that the ledger of the run expects, with a reason, does not block.
    """
    facts = []
    labels = [str(side["label"]) for side in sides]
    for pair in pairs:
        fact = classify(pair, measure, labels)
        if fact:
            fact["blocks"] = _blocks(fact, fail_on_drift, accept_known)
            facts.append(fact)
    covered = coverage(pairs, facts)
    runs = []
    for pair in pairs:
        runs += [side.run for side in pair.sides]
    ended = all(run.ended for run in runs)
    return facts, {
        "schema": SCHEMA,
        "baseline": dict(sides[0]),
        "candidate": dict(sides[1]),
        "started": max((run.started for run in runs), default=""),
        "ended": ended,
        "pairs": len(pairs),
        "compared": len(facts),
        "not_covered": len(pairs) - len(facts),
        "not_asked": covered.left_out,
        "named_not_asked": covered.named,
        "counts": {role: _counts(facts, role) for role in ROLES},
        "blocking": sum(fact["blocks"] for fact in facts),
        "fail_on_drift": fail_on_drift,
        "accept_known": accept_known,
        "causes": causes([fact for fact in facts if fact["kind"] not in UNCHANGED]),
        "facts": _by_kind(fact for fact in facts if fact["kind"] != SAME),
        "exit_code": int(_exit_code(facts, ended, bool(covered.named))),
    }


def _counts(facts: Sequence[Fact], role: str) -> dict[str, int]:
    """Return how many pairs of a role are of each kind."""
    found = Counter(fact["kind"] for fact in facts if fact["role"] == role)
    return {kind: found[kind] for kind in KINDS}


def _by_kind(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts in the order of their kinds, and as they are within one kind."""
    return sorted(facts, key=lambda fact: KINDS.index(fact["kind"]))


def _blocks(fact: Fact, fail_on_drift: bool, accept_known: bool) -> bool:
    if fact["kind"] in ("regressed", "vanished"):
        return not (accept_known and fact["known"])
    if fact["kind"] == UNSTABLE:
        return True
    return fact["kind"] == "drifted" and (fail_on_drift or bool(fact["beyond"]))


def _exit_code(facts: Sequence[Fact], ended: bool, name_left_out: bool) -> ExitCode:
    kinds = {fact["kind"] for fact in facts}
    if "harness_error" in kinds:
        return ExitCode.HARNESS_ERROR
    if any(fact["blocks"] for fact in facts):
        return ExitCode.UNEXPECTED
    if not ended or name_left_out or "unfinished" in kinds or not kinds - _ONE_SIDED:
        return ExitCode.INCOMPLETE
    return ExitCode.AS_EXPECTED


def causes(facts: Sequence[Fact]) -> list[Fact]:
    """Group facts by kind and cause, with the number of pairs, their cases, consumers and roles.
    Blocking causes come first, then pairs without a result, then by kind, then by frequency."""
    grouped: dict[tuple[str, str, bool], list[Fact]] = {}
    for fact in facts:
        grouped.setdefault((fact["kind"], fact["cause"], fact["blocks"]), []).append(fact)
    out = []
    for (kind, cause, blocks), members in grouped.items():
        roles = {fact["role"] for fact in members}
        replays = [fact["candidate"]["replay"] for fact in members]
        found = {
            "kind": kind,
            "cause": cause,
            "blocks": blocks,
            "pairs": len(members),
            "cases": sorted({fact["case"] for fact in members}),
            "producers": sorted({fact["producer"] for fact in members}),
            "consumers": sorted({fact["consumer"] for fact in members} - {"-"}),
            "checks": sorted({fact["check"] for fact in members}),
            "roles": [role for role in ROLES if role in roles],
            "alone": sorted({fact["alone"] for fact in members} - {""}),
            "replay": next(filter(None, replays), ""),
        }
        out.append(found)
    return sorted(
        out,
        key=lambda c: (
            not c["blocks"],
            c["kind"] not in WITHOUT_RESULT,
            KINDS.index(c["kind"]),
            -c["pairs"],
            c["cases"],
            c["cause"],
        ),
    )
