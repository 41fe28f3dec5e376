"""Who is alone in a run over several TensorFlow releases: summary, pages, terminal and command."""

from __future__ import annotations

import io
import json

import pytest
from matrix_world import TODAY, VERSION, World
from rich.console import Console
from test_matrix_summary import RUN, validate

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Observation, Result
from compat_matrix.report import grid_html, terminal
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.summary import summarise

FAILED = {"r": {"outcome": "FAIL_VALUE", "message": "other"}}


def cell(consumer: str, version: str, case: str = "a") -> Cell:
    return Cell(case, "fixture", "1.15.5", consumer, version, "values", version, "x")


def summary_of(**digests: str):
    """The summary of readers of one artifact: ``v2_20_0="recorded"``; any other digest fails."""
    cells, seen = [], []
    for name, digest in digests.items():
        evaluator = name == "evaluator"
        cells.append(
            cell("evaluator", "1") if evaluator else cell("tf2", name[1:].replace("_", "."))
        )
        details = {"answers": {"r": digest}}
        if digest == "recorded":
            seen.append(Observation(Outcome.PASS, details=details))
        else:
            seen.append(Observation(Outcome.FAIL_VALUE, details={**details, "failed": FAILED}))
    plan = Plan(tuple(cells))
    results = [Result.observed(plan.plan_id, one.id, what) for one, what in zip(plan, seen)]
    summary = summarise(plan, results, Ledger.parse("schema = 1\n"), TODAY, RUN)
    validate(summary, "summary.schema.json")
    return plan, results, summary


@pytest.mark.parametrize(
    ("digests", "said"),
    [
        (
            {"v2_19_0": "recorded", "v2_20_0": "recorded", "v2_21_0": "x", "evaluator": "recorded"},
            "2.19.0, 2.20.0 and the evaluator agree; 2.21.0 is alone",
        ),
        (
            {"v2_19_0": "y", "v2_20_0": "recorded", "v2_21_0": "x", "evaluator": "recorded"},
            "2.20.0 and the evaluator agree; 2.19.0, 2.21.0 are alone",
        ),
        (
            {"v2_20_0": "recorded", "v2_21_0": "x", "evaluator": "x"},
            "2.21.0 and the evaluator agree; 2.20.0 is alone",
        ),
        ({"v2_20_0": "recorded", "v2_21_0": "recorded", "evaluator": "x"}, ""),
        ({"v2_20_0": "recorded", "v2_21_0": "x"}, ""),
        ({"v2_21_0": "x", "evaluator": "recorded"}, ""),  # one release cannot be divided
    ],
)
def test_the_releases_that_the_evaluator_contradicts_are_alone(digests, said):
    plan, results, summary = summary_of(**digests)
    assert [item["words"] for item in summary["divisions"]] == ([said] if said else [])
    console = Console(file=io.StringIO(), width=200)
    terminal.render(plan, results, summary, console)
    assert (said in console.file.getvalue()) and (
        ("alone" in console.file.getvalue()) is bool(said)
    )
    page = grid_html.render(plan, results, summary, {}, {})
    assert ("Releases that disagree" in page, said in page) == (bool(said), True)


def test_all_releases_against_the_evaluator_is_red_for_us():
    _, _, summary = summary_of(v2_20_0="recorded", v2_21_0="recorded", evaluator="x")
    unexpected = [fact["cell"] for fact in summary["unexpected"]]
    assert (unexpected, summary["exit_code"]) == (["a/fixture@1.15.5/evaluator@1/values"], 1)


def test_the_command_names_who_is_alone(tmp_path):
    world = World(tmp_path)
    wrong = {"outcome": "FAIL_VALUE", "details": {"answers": {"r": "x"}, "failed": FAILED}}
    right = {"details": {"answers": {"r": "recorded"}}}
    new = f"{VERSION}+candidate"
    world.behave(
        [f"old/*/tf2@{new}/values", wrong],
        ["old/*/tf2@*/values", right],
        ["old/*/evaluator@*/values", right],
    )
    two = ("--runtime", "local", "--runtime", "candidate=local")
    done = world.run(*two, "--case", "old", "--check", "values")
    said = f"{VERSION} and the evaluator agree; {new} is alone"
    assert said in done.stdout, done.stdout + done.stderr
    (item,) = json.loads((world.out / "summary.json").read_text())["divisions"]
    assert (item["consumer"], item["alone"]) == ("tf2", [new])
