"""Where two TensorFlows answer otherwise, the reports name the one that the evaluator does not agree
with. The differences are planted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gate_folders import NEW, OLD, SIDES, cell, run
from matrix_world import VERSION, World

from compat_matrix.gate.compare import compare
from compat_matrix.gate.pairs import pairs_of_folders, pairs_of_run
from compat_matrix.report import gate_html, gate_markdown
from compat_matrix.workers.evaluator_worker import CONSUMER

OWN = CONSUMER["version"]
CANDIDATE = f"{VERSION}+candidate"
RECORDED = ("PASS", {"details": {"answers": {"r": "recorded"}}})
CLOSE = ("PASS", {"details": {"answers": {"r": "one ulp away"}}})
REFUSED = ("CALL_ERROR", {"error_class": "x.NotFoundError", "message": "no op"})


def wrong(digest: str) -> tuple[str, dict[str, object]]:
    """An answer that is not the recorded one."""
    failed = {"r": {"outcome": "FAIL_VALUE", "message": "request r: y: element 0 is 2"}}
    details = {"answers": {"r": digest}, "failed": failed}
    return ("FAIL_VALUE", {"message": "request r: y: element 0 is 2", "details": details})


def fixture(read: str, consumer: str = "tf2"):
    return cell(written="1.15.5", producer="fixture", read=read, consumer=consumer)


def judged(before, after, evaluator, way=pairs_of_run):
    """The verdict on a committed artifact that both read, and the evaluator."""
    nowhere = Path("nowhere")
    sides = [(fixture(OLD), *before), (fixture(NEW), *after)]
    judge = [(fixture(OWN, "evaluator"), *evaluator)] if evaluator else []
    if way is pairs_of_run:
        pairs = pairs_of_run(run(nowhere, *sides, *judge), OLD, NEW)
    else:
        pairs = pairs_of_folders(run(nowhere, sides[0]), run(nowhere, sides[1], *judge))
    return compare(pairs, SIDES)[1]


@pytest.mark.parametrize("way", [pairs_of_run, pairs_of_folders])
@pytest.mark.parametrize(
    ("before", "after", "evaluator", "who"),
    [
        (RECORDED, wrong("other"), RECORDED, NEW),
        (RECORDED, wrong("other"), CLOSE, NEW),
        (RECORDED, wrong("other"), wrong("other"), OLD),
        (wrong("other"), RECORDED, RECORDED, OLD),
        (RECORDED, wrong("other"), wrong("a third"), ""),
        (RECORDED, wrong("other"), REFUSED, ""),
        (RECORDED, wrong("other"), (), ""),
        (RECORDED, REFUSED, RECORDED, ""),  # no answer is not another answer
        (wrong("x"), wrong("y"), wrong("x"), NEW),
    ],
)
def test_the_side_that_the_evaluator_contradicts_is_alone(before, after, evaluator, who, way):
    verdict = judged(before, after, evaluator, way)
    fact = next(fact for fact in verdict["facts"] if fact["consumer"] == "tf2")
    other = OLD if who == NEW else NEW
    said = f"{other} and the evaluator agree; {who} is alone" if who else ""
    assert fact["alone"] == said
    assert "alone" not in fact["cause"]
    for cause in verdict["causes"]:  # a pair that fails as before is in none
        if all(cause[name] == fact[name] for name in ("kind", "cause", "blocks")):
            assert cause["alone"] == ([said] if said else [])


def test_every_report_names_who_is_alone():
    verdict = judged(RECORDED, wrong("other"), RECORDED)
    said = f"{OLD} and the evaluator agree; {NEW} is alone"
    assert said in gate_html.render(verdict)
    assert said in gate_markdown.render(verdict)


@pytest.mark.parametrize(("mine", "who"), [(RECORDED, CANDIDATE), (wrong("other"), VERSION)])
def test_the_command_asks_the_evaluator_and_names_who_is_alone(tmp_path, mine, who):
    world = World(tmp_path)
    planted = {VERSION: RECORDED, CANDIDATE: wrong("other")}
    world.behave(
        *(
            [f"old/*/{reader}/values", {"outcome": outcome, **fields}]
            for reader, (outcome, fields) in (
                (f"evaluator@{OWN}", mine),
                *((f"tf2@{version}", seen) for version, seen in planted.items()),
            )
        )
    )
    places = ("--cases-dir", world.cases, "--fixtures", world.fixtures, "--out", world.out)
    done = world.command(
        *(
            "gate",
            "run",
            "--baseline",
            "local",
            "--candidate",
            "local",
            "--same",
            "-n",
            "1",
            *places,
        ),
        *("--consumer", "tf2", "--case", "old", "--expectations", world.ledger),
        *("--", "-p", "matrix_double"),
    )
    other = VERSION if who == CANDIDATE else CANDIDATE
    said = f"{other} and the evaluator agree; {who} is alone"
    assert (done.returncode, said in done.stdout) == (1, True), done.stdout + done.stderr
    facts = json.loads((world.out / "gate.json").read_text())["facts"]
    assert {fact["alone"] for fact in facts if fact["check"] == "values"} == {said}
