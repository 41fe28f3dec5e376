"""JUnit XML of a gate: every compared pair. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.report.gate_words import side_words
from savedmodel_common.junit import ERROR, FAILURE, SKIPPED, TestCase, render

Record = Mapping[str, Any]


def of_gate(facts: Iterable[Record], verdict: Record) -> str:
    """Return ``junit.xml`` of a gate with every pair.

    Blocking pairs fail; pairs that still fail are skipped, with the error.
    """
    properties = {side: verdict[side]["label"] for side in ("baseline", "candidate")}
    return render("savedmodel-compat gate", (_pair(fact) for fact in facts), properties)


def _pair(fact: Record) -> TestCase:
    names = (f"{fact['role']}.{fact['case']}", fact["pair"], fact["seconds"])
    if fact["kind"] == "harness_error":
        state = ERROR
    elif fact["blocks"]:
        state = FAILURE
    elif fact["kind"] in (
        "still_failing",
        "changed_error",
        "unfinished",
        "regressed",
        "vanished",
    ) or (fact["kind"] == "newly_covered" and fact["candidate"]["outcome"] != Outcome.PASS.value):
        state = SKIPPED
    else:
        return TestCase(*names)
    lines = [f"{side}: {side_words(fact[side])}" for side in ("baseline", "candidate")]
    lines += [f"request {item['request']}: {item['message']}" for item in fact["drift"]]
    lines += [f"replay: {fact['candidate']['replay']}"] if fact["candidate"]["replay"] else []
    return TestCase(
        *names, state, f"{fact['kind'].replace('_', ' ')}: {fact['cause']}", "\n".join(lines)
    )
