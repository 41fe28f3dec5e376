"""Consumers that are one loader must agree: found, shown, and expected like any other failure."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matrix_world import TODAY, VERSION, World, entry
from rich.console import Console
from test_matrix_summary import RUN, validate

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan, agreements
from compat_matrix.cells.results import Observation, Result
from compat_matrix.report import terminal
from compat_matrix.verdict import Ledger, agreement
from compat_matrix.verdict.summary import summarise
from compat_matrix.verdict.update import update

FAIL = ("LOAD_ERROR", "TF_NOT_FOUND")
LEDGER = "schema = 1\n"


def cells(*consumers, case="a", decided=None):
    one = Cell(case, "fixture", "1.15.5", "", "2.21.0", "values", "local", "x")
    return [replace(one, consumer=name, decided=decided) for name in consumers or ("c_api", "cpp")]


def expected(consumer, outcome="LOAD_ERROR", error_class="TF_NOT_FOUND", case="a"):
    return (
        entry(case, "fixture", consumer, "values")
        .replace("LOAD_ERROR", outcome)
        .replace("NotFoundError", error_class)
    )


def planned(cells):
    return Plan((*cells, *agreements(cells)))


def verdict(*observed, ledger=LEDGER, plan=None):
    """The summary; ``observed``: for each cell (outcome, error class, details), or None."""
    plan = plan or planned(cells())
    results = []
    for cell, seen in zip(plan, observed):
        if seen is not None:
            outcome, error_class, *details = seen
            observation = Observation(
                Outcome(outcome), error_class, details=details[0] if details else {}
            )
            results.append(Result.observed(plan.plan_id, cell.id, observation))
    for cell in plan:
        if cell.sides:
            said = agreement.observe(cell, {result.cell: result for result in results})
            fields = (plan.plan_id, cell.id)
            results.append(
                Result.not_executed(*fields, Outcome.NOT_RUN, said)
                if isinstance(said, str)
                else Result.observed(*fields, said)
            )
    summary = summarise(plan, results, Ledger.parse(ledger), TODAY, RUN)
    validate(summary, "summary.schema.json")
    return summary, plan, results


def answers(**digests):
    return ("PASS", None, {"answers": digests})


BOTH = "a/fixture@1.15.5/c_api+cpp@2.21.0/values"


@pytest.mark.parametrize(
    ("one", "other", "differs", "message"),
    [
        (FAIL, ("PASS", None), "outcome", "c_api: LOAD_ERROR TF_NOT_FOUND; cpp: PASS"),
        (
            FAIL,
            ("LOAD_ERROR", "TF_INTERNAL"),
            "error_class",
            "c_api: TF_NOT_FOUND; cpp: TF_INTERNAL",
        ),
        (
            answers(r1="a", r2="b"),
            answers(r1="a", r2="c"),
            "answers",
            "c_api and cpp answer otherwise to r2",
        ),
        (answers(r1="a"), answers(), "answers", "c_api and cpp answer otherwise to r1"),
    ],
)
def test_what_differs_is_unexpected(one, other, differs, message):
    ledger = (
        LEDGER
        + (expected("c_api") if one is FAIL else "")
        + (expected("cpp", error_class=other[1]) if other[1] else "")
    )
    summary, _, _ = verdict(one, other, ledger=ledger)
    (fact,) = summary["unexpected"]
    assert (fact["cell"], fact["outcome"], fact["error_class"], fact["message"]) == (
        BOTH,
        "DISAGREE",
        differs,
        message,
    )
    (pair,) = summary["disagreements"]
    assert (pair["differs"], pair["expected"]) == (differs, False)
    assert (summary["compared"], summary["exit_code"]) == (1, 1)
    assert (summary["cells"], summary["observed"], summary["by_outcome"]["DISAGREE"]) == (
        3,
        3,
        1,
    )  # a cell of the plan


def test_what_is_the_same_agrees():
    for one in (FAIL, answers(r1="a"), ("PASS", None)):
        ledger = LEDGER + (expected(["c_api", "cpp"]) if one is FAIL else "")
        summary, _, _ = verdict(one, one, ledger=ledger)
        assert (summary["compared"], summary["disagreements"], summary["exit_code"]) == (1, [], 0)


@pytest.mark.parametrize("missing", [None, ("SETUP_ERROR", "x"), ("ENV_ERROR", "x")])
def test_where_one_is_not_there_nothing_is_compared(missing):
    summary, _, _ = verdict(("PASS", None), missing)
    assert (summary["compared"], summary["disagreements"]) == (0, [])


def test_where_one_does_not_apply_no_pair_is_planned():
    decided = Decision(Outcome.NOT_APPLICABLE, "no headers")
    assert (
        agreements(
            [*cells("c_api"), *cells("cpp", decided=decided), *cells("tf2", "c_api", case="b")]
        )
        == []
    )


def test_where_one_cannot_be_asked_here_the_pair_is_planned_and_not_run():
    (pair,) = agreements(
        [*cells("c_api"), *cells("cpp", decided=Decision(Outcome.NOT_RUN, "no compiler"))]
    )
    assert (pair.consumer, pair.decided.reason) == ("c_api+cpp", "no compiler")


KNOWN = expected("c_api+cpp", "DISAGREE", "outcome") + expected("c_api")


def test_a_known_difference_is_in_the_ledger():
    summary, plan, results = verdict(FAIL, ("PASS", None), ledger=LEDGER + KNOWN)
    assert (summary["unexpected"], summary["exit_code"]) == ([], 0)
    assert [pair["expected"] for pair in summary["disagreements"]] == [True]
    console = Console(file=io.StringIO(), width=200)
    terminal.render(plan, results, summary, console)
    assert "agree in 0 of 1 cells" in console.file.getvalue()


def test_the_ledger_says_what_differs():
    summary, _, _ = verdict(
        FAIL, ("PASS", None), ledger=LEDGER + KNOWN.replace('"outcome"', '"answers"')
    )
    assert [(fact["kind"], fact["cell"]) for fact in summary["unexpected"]] == [
        ("wrong_error", BOTH)
    ]


def test_a_difference_that_is_gone_is_a_stale_entry():
    summary, _, _ = verdict(
        ("PASS", None), ("PASS", None), ledger=LEDGER + expected("c_api+cpp", "DISAGREE", "outcome")
    )
    assert summary["exit_code"] == 2
    assert [(fact["kind"], fact["cell"]) for fact in summary["unexpected"]] == [
        ("unexpected_pass", BOTH)
    ]


def test_an_entry_for_any_consumer_is_none_for_two():
    summary, _, _ = verdict(FAIL, FAIL, ledger=LEDGER + expected("*"))
    assert (summary["unexpected"], summary["exit_code"]) == ([], 0)


def test_update_writes_and_removes_entries_of_pairs():
    plan = planned(cells())

    def updated(text, one, other):
        _, _, results = verdict(one, other, plan=plan)
        by_cell = {result.cell: result for result in results}
        return update(text, plan, by_cell, "why", TODAY).text

    text = updated(LEDGER, answers(r="1"), answers(r="2"))
    (made,) = Ledger.parse(text).entries
    assert (made.consumer, made.outcome, made.error_class) == (
        ("c_api+cpp",),
        Outcome.DISAGREE,
        "answers",
    )
    assert verdict(answers(r="1"), answers(r="2"), ledger=text)[0]["exit_code"] == 0
    assert Ledger.parse(updated(text, answers(r="1"), answers(r="1"))).entries == ()


def test_a_run_shows_it_everywhere(tmp_path):
    world = World(tmp_path)
    world.cpp(True)
    world.expect(expected("cpp", case="old"))
    fail = {"outcome": "LOAD_ERROR", "error_class": "TF_NOT_FOUND", "message": "no op"}
    world.behave(["old/*/cpp@*/values", fail])
    done = world.run("--case", "old")
    pair = f"old/fixture@1.15.5/c_api+cpp@{VERSION}/values"
    assert done.returncode == 1
    assert f"DISAGREE       {pair} " in done.stdout
    assert "c_api: PASS; cpp: LOAD_ERROR TF_NOT_FOUND" in done.stdout
    page = (world.out / "report.html").read_text()
    assert pair in page
    junit = ElementTree.parse(world.out / "junit.xml")
    assert [
        case.get("name") for case in junit.iter("testcase") if case.find("failure") is not None
    ] == [pair]
    assert world.matrix("expect explain", pair).stdout.startswith("PASS is expected")
    world.expect(
        expected("cpp", case="old"), expected("c_api+cpp", "DISAGREE", "outcome", case="old")
    )
    assert world.run("--case", "old").returncode == 0
    assert (
        json.loads((world.out / "summary.json").read_text())["disagreements"][0]["expected"] is True
    )
    assert world.matrix("expect check").returncode == 0


def test_agreements_are_planned_chosen_run_in_many_processes_and_resumed(tmp_path):
    world = World(tmp_path)
    world.cpp(True)
    pair = f"old/fixture@1.15.5/c_api+cpp@{VERSION}/values"
    sides = {pair.replace("c_api+cpp", name) for name in ("c_api", "cpp")}
    assert pair in world.matrix("run", "--dry-run").stdout.splitlines()
    assert world.run("--cell", pair, out=tmp_path / "one").returncode == 0
    records = world.results(tmp_path / "one")
    assert {name for name, record in records.items() if record["outcome"] == "PASS"} == {
        pair,
        *sides,
    }
    assert world.run("--consumer", "cpp", "--case", "old", out=tmp_path / "alone").returncode == 0
    assert world.results(tmp_path / "alone")[pair]["message"] == "deselected"
    world.behave(
        [
            "old/*/cpp@*/values",
            {"outcome": "ENV_ERROR", "error_class": "OSError", "message": "no disk"},
        ]
    )
    world.run("--case", "old", "-n", "2")
    record = world.results()[pair]
    assert (record["outcome"], record["message"]) == (
        "NOT_RUN",
        f"{pair.replace('c_api+', '')} is ENV_ERROR",
    )
    before = len(world.executed())
    world.behave()
    assert world.run("--case", "old", "-n", "2", "--resume").returncode == 0
    assert [cell for _, cell in world.executed()[before:]] == [pair.replace("c_api+", "")]
    assert {
        record["outcome"]
        for record in world.results().values()
        if record["cell"].startswith("old/")
    } == {
        "PASS",
        "NOT_APPLICABLE",
    }
