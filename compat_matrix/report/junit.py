"""JUnit XML for CI systems: every planned cell of a run, or every compared pair of a gate.

Pure functions.

The dialect is the common one: ``testsuites/testsuite/testcase`` with ``failure``, ``error`` or
``skipped``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from compat_matrix.cells import tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import cause_of
from compat_matrix.report.gate_words import side_words
from reference_impl.errors import printable

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
MAX_MESSAGE, MAX_TEXT = 300, 4000  # characters
Record = Mapping[str, Any]


@dataclass(frozen=True)
class TestCase:
    """One test case.

    ``state``: failure, error, skipped, or None for one that passed; ``message`` and ``text`` say
    why.
    """

    group: str
    name: str
    seconds: float = 0.0
    state: str | None = None
    message: str = ""
    text: str = ""


def render(
    suite: str, cases: Iterable[TestCase], properties: Mapping[str, str] | None = None
) -> str:
    """Return the document of one suite."""
    cases = list(cases)
    states = Counter(case.state for case in cases)
    counts = {
        "failures": states[FAILURE],
        "errors": states[ERROR],
        "skipped": states[SKIPPED],
        "tests": len(cases),
    }
    facts = {"name": suite, **{name: str(count) for name, count in counts.items()}}
    facts["time"] = _seconds(sum(case.seconds for case in cases))
    root = ElementTree.Element("testsuites", facts)
    element = ElementTree.SubElement(root, "testsuite", facts)
    if properties:
        listed = ElementTree.SubElement(element, "properties")
        for name, value in properties.items():
            ElementTree.SubElement(
                listed, "property", {"name": name, "value": _clean(value, MAX_MESSAGE)}
            )
    for case in cases:
        one = {"classname": _clean(case.group, MAX_MESSAGE), "name": _clean(case.name, MAX_MESSAGE)}
        child = ElementTree.SubElement(element, "testcase", {**one, "time": _seconds(case.seconds)})
        if case.state:
            why = ElementTree.SubElement(
                child, case.state, {"message": _clean(case.message, MAX_MESSAGE)}
            )
            why.text = _clean(case.text, MAX_TEXT)
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


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


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _clean(text: str, limit: int) -> str:
    # XML cannot hold most control characters, not even escaped; the others must not control a CI
    # page.
    text = printable(text, "\n\t")
    return (
        text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} characters more)"
    )
