"""JUnit XML of a run and of a gate: every planned cell, or every compared pair.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compat_matrix.cells import tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import cause_of
from compat_matrix.report.gate_words import side_words
from savedmodel_common.junit import ERROR, FAILURE, SKIPPED, TestCase, render

Record = Mapping[str, Any]


def of_run(plan: Record, results: Iterable[Record], summary: Record) -> str:
    """Return ``junit.xml`` of a run, from its plan, results and summary: every cell that the plan
    does not rule out.

    Cells of an earlier, resumed session are included.
    """
    by_cell = {result["cell"]: result for result in results}
    wanted = {fact["cell"]: fact.get("wanted") for fact in summary["unexpected"]}
    not_run = {item["cell"]: item["reason"] for item in summary["not_run"]}
    cases = []
    for cell in plan["cells"]:
        result = by_cell.get(cell["id"])
        if result and result["outcome"] == Outcome.NOT_APPLICABLE.value:
            continue
        if result is None or result["outcome"] == Outcome.NOT_RUN.value:
            cases.append(
                TestCase(
                    _group(cell),
                    cell["id"],
                    state=SKIPPED,
                    message=not_run.get(cell["id"], "no result"),
                )
            )
        else:
            cases.append(_observed(cell, result, wanted.get(cell["id"])))
    properties = {"plan_id": summary["plan_id"], "not applicable": str(summary["not_applicable"])}
    return render("savedmodel-compat matrix", cases, properties)


def _group(cell: Record) -> str:
    return f"{cell['case']}.{cell['producer']}"


def _observed(cell: Record, result: Record, wanted: Record | None) -> TestCase:
    seconds = sum((result.get("timings") or {}).values())
    outcome = result["outcome"]
    if result["expected"] is not False:
        return TestCase(_group(cell), cell["id"], seconds)
    due = (
        " ".join(filter(None, (wanted["outcome"], wanted["error_class"], wanted["message"])))
        if wanted
        else "PASS"
    )
    said = " ".join(filter(None, (result["error_class"], result["message_normalised"])))
    briefly = " ".join(
        filter(
            None, (result["error_class"], cause_of(result["message"], result["message_normalised"]))
        )
    )
    note = (
        ""
        if outcome == Outcome.UNSTABLE.value
        else tries.facts_of(result.get("details") or {}).get(tries.NOTE, "")
    )
    lines = [f"{outcome}, expected {due}", said, note]
    lines += [f"{name}: {path}" for name, path in sorted(result["evidence"].items())]
    lines += [f"replay: {result['replay']}"] if result["replay"] else []
    return TestCase(
        _group(cell),
        cell["id"],
        seconds,
        ERROR if Outcome(outcome).harness_failure else FAILURE,
        f"{outcome} {briefly}".strip(),
        "\n".join(filter(None, lines)),
    )


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
