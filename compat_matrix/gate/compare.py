"""What became of every pair, and of the whole: the classes, their causes, the exit code. Pure, but for what ``measure`` reads.

A pair is, the first that applies:

* ``harness_error``: on either side the harness or the machine failed; nothing can be said,
* ``unfinished``: the run did not come to its end there,
* ``vanished``: the baseline was observed, the candidate was not (a regression too); ``newly_covered``: the other way round,
* ``regressed``: passed, fails now; ``fixed``: failed, passes now; ``still_failing``: ``changed`` says if the error is another,
* ``drifted``: both pass, but the answers differ,
* ``same``.

What blocks: regressed and vanished pairs, and a drift beyond the tolerance that the case itself states (without one it is
bit-exact). That is the limit a reader's answers are held to when they are compared with the recorded ones: who writes an artifact
anew must not be allowed more. A drift within it blocks only with ``fail_on_drift``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from compat_matrix.gate.drift import MAX_REQUESTS, Drift
from compat_matrix.gate.pairs import NOT_PLANNED, ROLES, Pair, Side
from compat_matrix.outcomes import ExitCode, Outcome

SCHEMA = 1
SAME = "same"
KINDS = ("regressed", "vanished", "drifted", "still_failing", "fixed", "newly_covered", "harness_error", "unfinished")
MAX_MESSAGE = 300  # characters of one side's message
_HARNESS = (Outcome.SETUP_ERROR, Outcome.ENV_ERROR)

Fact = dict[str, Any]
Measure = Callable[[Pair], list[Drift]]


def no_measure(_: Pair) -> list[Drift]:
    """For who does not look at answers."""
    return []


def classify(pair: Pair, measure: Measure = no_measure) -> Fact | None:
    """The fact about a pair; None for one that neither side observed, and was not to."""
    a, b = pair.baseline, pair.candidate
    seen_a, seen_b = a is not None and a.observed, b is not None and b.observed
    drift: list[Drift] = []
    if any(side and side.result and side.result.outcome in _HARNESS for side in (a, b)):
        kind = "harness_error"
    elif any(side and side.unfinished for side in (a, b)):
        kind = "unfinished"
    elif not seen_a or not seen_b:
        if not seen_a and not seen_b:
            return None
        kind = "vanished" if seen_a else "newly_covered"
    else:
        kind, drift = _both_observed(pair, measure)
    return _fact(pair, kind, drift)


def _both_observed(pair: Pair, measure: Measure) -> tuple[str, list[Drift]]:
    passed = [_outcome(side) is Outcome.PASS for side in (pair.baseline, pair.candidate)]
    if passed == [True, True]:
        drift = measure(pair)
        return ("drifted" if drift else SAME), drift
    return {(True, False): "regressed", (False, True): "fixed", (False, False): "still_failing"}[passed[0], passed[1]], []


def _outcome(side: Side | None) -> Outcome | None:
    return side.result.outcome if side and side.result else None


def _fact(pair: Pair, kind: str, drift: list[Drift]) -> Fact:
    cell = pair.cell
    sides = {"baseline": _side(pair.baseline), "candidate": _side(pair.candidate)}
    return {
        "pair": pair.name,
        "role": pair.role,
        "kind": kind,
        "case": cell.case,
        "producer": cell.producer,
        "consumer": cell.consumer,
        "check": cell.check,
        **sides,
        "changed": kind == "still_failing" and _error(sides["baseline"]) != _error(sides["candidate"]),
        "known": _known(pair.candidate, kind),
        "cause": _cause(kind, sides, drift),
        "drift": drift[:MAX_REQUESTS],
        "drifted_requests": len(drift),
        "beyond": any(not item["within"] for item in drift),
        "seconds": sum((pair.candidate.result.timings if pair.candidate and pair.candidate.result else {}).values()),
    }


def _side(side: Side | None) -> Fact:
    """A side as a report shows it. ``outcome`` is None where nothing was observed; ``message`` says why."""
    if side is None or not side.observed or side.result is None:
        cell = side.cell.id if side else None
        why = side.reason if side else NOT_PLANNED
        return {"cell": cell, "outcome": None, "error_class": None, "message": why[:MAX_MESSAGE], "skew": None, "replay": ""}
    result = side.result
    return {
        "cell": result.cell,
        "outcome": str(result.outcome),
        "error_class": result.error_class,
        "message": result.message_normalised[:MAX_MESSAGE],
        "skew": skew_words(result.details.get("skew")),
        "replay": result.replay,
    }


def skew_words(skew: Any) -> str | None:
    """The name of a version skew and what would help, as one line."""
    if not skew:
        return None
    if isinstance(skew, dict):
        return ": ".join(str(skew[key]) for key in ("kind", "message", "help") if skew.get(key)) or None
    return str(skew)


def _error(side: Fact) -> tuple[Any, ...]:
    return side["outcome"], side["error_class"], side["message"]


def _known(candidate: Side | None, kind: str) -> bool:
    """Whether the candidate's failure is one the ledger expects, its absence one that was declared."""
    if candidate is None or kind not in ("regressed", "vanished", "still_failing"):
        return False
    if kind == "vanished":
        return bool(candidate.cell.decided and candidate.cell.decided.outcome is Outcome.NOT_APPLICABLE)
    return bool(candidate.result and candidate.result.expected)


def _cause(kind: str, sides: dict[str, Fact], drift: list[Drift]) -> str:
    """What pairs with one cause have in common, in words."""
    if kind == SAME:
        return ""
    if kind == "drifted":
        return str(drift[0]["message"])
    side = sides["baseline"] if kind == "fixed" else sides["candidate"]
    words = (side["outcome"], side["error_class"], side["skew"] or side["message"])
    return " ".join(filter(None, words))


def compare(
    pairs: Sequence[Pair],
    measure: Measure = no_measure,
    *,
    fail_on_drift: bool = False,
    accept_known: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[Fact], Fact]:
    """The facts about all pairs, and the verdict: the content of ``gate.json`` but for who was compared.

    ``accept_known``: a regression that the candidate's ledger expects, with a reason, does not block.
    """
    facts = []
    for done, pair in enumerate(pairs, 1):
        fact = classify(pair, measure)
        if fact:
            fact["blocks"] = _blocks(fact, fail_on_drift, accept_known)
            facts.append(fact)
        progress(done)
    changed = [fact for fact in facts if fact["kind"] != SAME]
    counts = {role: Counter(fact["kind"] for fact in facts if fact["role"] == role) for role in ROLES}
    return facts, {
        "schema": SCHEMA,
        "pairs": len(pairs),
        "compared": len(facts),
        "not_covered": len(pairs) - len(facts),
        "counts": {role: {kind: counts[role][kind] for kind in (*KINDS, SAME)} for role in ROLES},
        "blocking": sum(fact["blocks"] for fact in facts),
        "fail_on_drift": fail_on_drift,
        "accept_known": accept_known,
        "causes": causes(changed),
        "facts": [fact for kind in KINDS for fact in changed if fact["kind"] == kind],
        "exit_code": int(_exit_code(facts)),
    }


def _blocks(fact: Fact, fail_on_drift: bool, accept_known: bool) -> bool:
    if fact["kind"] in ("regressed", "vanished"):
        return not (accept_known and fact["known"])
    return fact["kind"] == "drifted" and (fail_on_drift or bool(fact["beyond"]))


def _exit_code(facts: Sequence[Fact]) -> ExitCode:
    kinds = {fact["kind"] for fact in facts}
    if "harness_error" in kinds:
        return ExitCode.HARNESS_ERROR
    if any(fact["blocks"] for fact in facts):
        return ExitCode.UNEXPECTED
    if not facts or "unfinished" in kinds:
        return ExitCode.INCOMPLETE
    return ExitCode.AS_EXPECTED


def causes(facts: Sequence[Fact]) -> list[Fact]:
    """Facts of one kind and one cause together: how many pairs, of which cases, consumers, roles. What blocks comes first, then
    by kind, then the most frequent."""
    grouped: dict[tuple[str, str, bool], list[Fact]] = {}
    for fact in facts:
        grouped.setdefault((fact["kind"], fact["cause"], fact["blocks"]), []).append(fact)
    out = [
        {
            "kind": kind,
            "cause": cause,
            "blocks": blocks,
            "pairs": len(members),
            "cases": sorted({fact["case"] for fact in members}),
            "producers": sorted({fact["producer"] for fact in members}),
            "consumers": sorted({fact["consumer"] for fact in members} - {"-"}),
            "checks": sorted({fact["check"] for fact in members}),
            "roles": [role for role in ROLES if any(fact["role"] == role for fact in members)],
            "replay": next(filter(None, (fact["candidate"]["replay"] for fact in members)), ""),
        }
        for (kind, cause, blocks), members in grouped.items()
    ]
    return sorted(out, key=lambda c: (not c["blocks"], KINDS.index(c["kind"]), -c["pairs"], c["cases"], c["cause"]))
