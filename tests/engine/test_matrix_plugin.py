"""Cells as pytest items: real pytest processes, workers played by ``matrix_double``."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from matrix_world import FUNCTION, REPO, World, entry

from compat_matrix.cases import all_cases
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.checks import CHECKS
from compat_matrix.plan.planning import Axes, case_artifacts, expand, fixture_artifacts
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger

FAIL = {
    "outcome": "LOAD_ERROR",
    "error_class": "x.NotFoundError",
    "message": "no op 'Foo' in /tmp/there",
    "evidence": {"log": "logs/1"},
}
V = "2.99.0"


RUNTIME = Runtime("local", Path(sys.executable), V)


@pytest.fixture
def world(tmp_path):
    """A world with a written plan: case beta (two producers, load and values), fixture old."""
    made = World(tmp_path)
    (made.cases / "alpha.py").unlink()
    made.out.mkdir()
    write_plan(made)
    return made


def write_plan(world):
    """Plan what is in the world now; returns cell id -> cell."""
    ledger = Ledger.read(world.ledger)
    artifacts = fixture_artifacts(world.fixtures) + case_artifacts(all_cases(world.cases), RUNTIME)
    plan = expand(artifacts, CONSUMERS, CHECKS, Axes((RUNTIME,), home=("local",)), ledger)
    plan.write(world.out / "plan.json")
    (world.out / "expectations.toml").write_text(world.ledger.read_text())
    return plan.by_id


def outcomes(world):
    return {cell: record["outcome"] for cell, record in world.results().items()}


def reasons(world, outcome="NOT_RUN"):
    return {
        cell: record["message"]
        for cell, record in world.results().items()
        if record["outcome"] == outcome
    }


def undecided(cells):
    return [cell_id for cell_id, cell in cells.items() if not cell.decided]


@pytest.mark.parametrize(
    "parallel", [(), ("-p", "xdist", "-n", "2"), ("-p", "xdist", "-n2", "--dist", "loadgroup")]
)
def test_every_planned_cell_is_an_item_and_has_a_result(world, parallel):
    cells = write_plan(world)
    world.behave(["beta/reference@*/-/produce", FAIL], ["*/c_api@*/load", FAIL])
    done = world.pytest(world.out / "plan.json", *parallel)
    assert done.returncode == 1, done.stderr
    found = outcomes(world)
    assert list(found) == list(cells)  # in the order of the plan
    failed = {cell for cell, outcome in found.items() if outcome == "LOAD_ERROR"}
    assert failed == {
        "beta/reference@2.99.0/-/produce",
        *(f"{artifact}/c_api@{V}/load" for artifact in ("beta/tf2@2.99.0", "old/fixture@1.15.5")),
    }
    assert all("producer failed: LOAD_ERROR" in reason for reason in reasons(world).values())
    assert {cell.split("/")[1] for cell in reasons(world)} == {f"reference@{V}"}
    decided = {cell for cell, facts in cells.items() if facts.decided}
    assert {cell for cell, outcome in found.items() if outcome == "NOT_APPLICABLE"} == decided
    assert {cell for _, cell in world.executed()}.isdisjoint(decided)
    processes = {}
    for process, cell in world.executed():
        processes.setdefault("/".join(cell.split("/")[:2]), set()).add(process)
    assert {len(where) for where in processes.values()} == {1}  # an artifact stays in one process
    assert len(set.union(*processes.values())) == (2 if parallel else 1)


def test_a_failure_says_all_that_is_needed(world):
    world.behave(["old/*/c_api@*/load", FAIL])
    done = world.pytest(world.out / "plan.json", "-k", "c_api and load")
    text = done.stdout
    cell = f"old/fixture@1.15.5/c_api@{V}/load"
    assert "LOAD_ERROR, expected PASS" in text
    assert "x.NotFoundError: " in text and "'Foo'" in text
    assert f"log: {world.out / 'logs/1'}" in text
    assert "skew:" not in text
    assert f"replay: savedmodel-compat matrix run --out replay --cell {cell}" in text
    assert "Traceback" not in text
    record = world.results()[cell]
    assert (record["message"], record["message_normalised"]) == (
        FAIL["message"],
        "no op 'Foo' in <path>",
    )
    assert record["expected"] is False


def test_a_failure_names_the_version_skew(world):
    skew = {
        "kind": "unknown_op",
        "text": "unknown op 'Foo': since 2.21; node 'a' of the main graph",
    }
    world.behave(["old/*/c_api@*/load", {**FAIL, "details": {"skew": skew}}])
    assert (
        f"skew: {skew['text']}"
        in world.pytest(world.out / "plan.json", "-k", "c_api and load").stdout
    )


@pytest.mark.parametrize(
    ("action", "status", "expected", "text"),
    [
        (FAIL, 0, True, "1 passed"),
        (
            {},
            1,
            False,
            (
                "PASS, expected LOAD_ERROR NotFoundError /^no op/, entry 1 (old/fixture/c_api/load"
                " -> LOAD_ERROR): known"
            ),
        ),
        (
            {**FAIL, "error_class": "x.Other"},
            1,
            False,
            "LOAD_ERROR, expected LOAD_ERROR NotFoundError",
        ),
    ],
)
def test_an_item_passes_when_the_outcome_is_the_expected_one(world, action, status, expected, text):
    world.expect(entry("old", "fixture", "c_api", "load", message="^no op"))
    write_plan(world)
    world.behave(["*", action])
    cell = f"old/fixture@1.15.5/c_api@{V}/load"
    done = world.pytest(f"{world.out / 'plan.json'}::{cell}")
    assert done.returncode == status
    assert text in done.stdout
    record = world.results()[cell]
    assert (record["expected"], record["expectation"]) == (expected, 0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"raise": "our bug"}, "our bug"),
        ({"system_exit": 7}, "7"),
        ({"return": "nonsense"}, "a check must return an Observation, not str"),
        ({"outcome": "FINE"}, "'FINE' is not a valid Outcome"),
    ],
)
def test_whatever_a_check_does_becomes_a_result(world, action, message):
    cell = f"old/fixture@1.15.5/tf2@{V}/load"
    world.behave([cell, action])
    done = world.pytest(world.out / "plan.json", "-k", "old")
    assert done.returncode == 1
    record = world.results()[cell]
    assert (record["outcome"], record["message"], record["expected"]) == (
        "SETUP_ERROR",
        message,
        False,
    )
    assert "Traceback" in (world.out / record["evidence"]["traceback"]).read_text()
    passed = [name for name, outcome in outcomes(world).items() if outcome == "PASS"]
    # Agreement cells compare results and execute nothing.
    assert len([name for name in passed if "+" not in name]) == len(world.executed()) - 1 > 10


def test_a_process_that_dies_costs_one_cell(world):
    cell = f"old/fixture@1.15.5/tf2@{V}/values"
    world.behave([cell, {"die": 3}])
    done = world.pytest(world.out / "plan.json", "-p", "xdist", "-n", "2")
    assert done.returncode == 1, done.stdout
    found = outcomes(world)
    assert {
        one: outcome for one, outcome in found.items() if outcome not in ("PASS", "NOT_APPLICABLE")
    } == {cell: "SETUP_ERROR"}
    assert "crashed while running" in world.results()[cell]["message"]
    assert [one for _, one in world.executed()].count(cell) == 1


def test_a_cell_whose_artifact_is_not_there_is_not_run(world):
    world.behave(["*/values", {"not_produced": "no artifact at x"}])
    done = world.pytest(world.out / "plan.json", "-k", "old and tf2 and values", "-rs")
    assert (done.returncode, "no artifact at x" in done.stdout) == (0, True)
    assert reasons(world)[f"old/fixture@1.15.5/tf2@{V}/values"] == "no artifact at x"


@pytest.mark.parametrize("parallel", [(), ("-p", "xdist", "-n", "2")])
def test_a_selection_brings_the_productions_it_needs(world, parallel):
    done = world.pytest(
        world.out / "plan.json", "-k", "beta and c_api and load and not cpp", *parallel
    )
    assert done.returncode == 0, done.stdout
    executed = [cell for _, cell in world.executed()]
    expected = [
        f"beta/{p}@{V}/{rest}"
        for p in ("reference", "tf2")
        for rest in ("-/produce", f"c_api@{V}/load")
    ]
    assert sorted(executed) == sorted(expected)
    for producer in ("reference", "tf2"):
        production, load = f"beta/{producer}@{V}/-/produce", f"beta/{producer}@{V}/c_api@{V}/load"
        assert executed.index(production) < executed.index(load)
    assert set(reasons(world).values()) == {"deselected"}


def test_an_artifact_of_an_earlier_run_is_not_made_again(world):
    for consumer in ("tf2", "c_api"):
        world.pytest(world.out / "plan.json", "-k", f"beta and {consumer} and load")
    executed = [cell for _, cell in world.executed()]
    assert executed.count(f"beta/tf2@{V}/-/produce") == 1
    found = outcomes(world)
    assert (
        found[f"beta/tf2@{V}/-/produce"]
        == found[f"beta/tf2@{V}/c_api@{V}/load"]
        == found[f"beta/tf2@{V}/tf2@{V}/load"]
        == "PASS"
    )


def test_stop_at_the_first_failure_and_go_on_later(world):
    world.behave([f"beta/tf2@{V}/tf2@{V}/load", FAIL])
    done = world.pytest(world.out / "plan.json", "-x")
    assert done.returncode in (1, 2)
    first = len(world.executed())
    assert "stopping after 1 failures" in set(reasons(world).values())
    assert len(world.results()) == len(write_plan(world))
    assert first < len(undecided(write_plan(world)))


def test_junit_holds_every_item_and_no_payload(world):
    world.behave(["old/*/c_api@*/load", FAIL])
    world.pytest(world.out / "plan.json", "--junitxml", world.out / "junit.xml")
    suite = ElementTree.parse(world.out / "junit.xml").getroot().find("testsuite")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert set(cases) == set(undecided(write_plan(world)))
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert sorted(failed) == [
        f"old/fixture@1.15.5/c_api+cpp@{V}/load",
        f"old/fixture@1.15.5/c_api@{V}/load",
    ]
    properties = cases[f"old/fixture@1.15.5/c_api@{V}/load"].find("properties")
    assert [(p.get("name"), p.get("value")) for p in properties] == [("outcome", "LOAD_ERROR")]


def test_results_are_on_disk_while_the_run_goes_on(world):
    """A run that is killed leaves every finished cell."""
    world.behave([f"old/fixture@1.15.5/tf2@{V}/values", {"interrupt": True}])
    done = world.pytest(world.out / "plan.json")
    assert done.returncode == 2
    found = outcomes(world)
    assert found[f"beta/tf2@{V}/tf2@{V}/load"] == "PASS"
    assert reasons(world)[f"old/fixture@1.15.5/tf2@{V}/values"] == "interrupted"
    assert list(found) == list(write_plan(world))


def test_a_killed_run_leaves_whole_lines(world):
    world.case("slow", [FUNCTION])
    write_plan(world)
    (world.out / "expectations.toml").unlink()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "-p",
        "compat_matrix.pytest_plugin",
        "-p",
        "matrix_double",
    ]
    world.behave([f"slow/tf2@{V}/tf2@{V}/values", {"die": 9}])
    done = subprocess.run(
        [*command, str(world.out / "plan.json")],
        env=world.environment(),
        cwd=world.root,
        capture_output=True,
    )
    assert done.returncode == 9
    lines = (world.out / "results.jsonl").read_text().splitlines(keepends=True)
    assert all(line.endswith("\n") and json.loads(line)["schema"] == 1 for line in lines)
    executed = {cell for _, cell in world.executed()} - {f"slow/tf2@{V}/tf2@{V}/values"}
    assert executed <= set(outcomes(world))


def test_results_of_another_plan_are_dropped(world):
    world.pytest(world.out / "plan.json")
    world.case("another", [FUNCTION])
    cells = write_plan(world)
    world.pytest(world.out / "plan.json", "-k", "another and tf2")
    assert set(outcomes(world)) == set(cells)
    assert reasons(world)[f"old/fixture@1.15.5/tf2@{V}/load"] == "deselected"


@pytest.mark.parametrize("damage", ["plan", "ledger", "results"])
def test_files_that_cannot_be_used_stop_the_run(world, damage):
    file, text = {
        "plan": ("plan.json", '{"schema": 1, "plan_id": "x", "cells": []}'),
        "ledger": ("expectations.toml", "schema = 7"),
        "results": ("results.jsonl", "{}\n"),
    }[damage]
    (world.out / file).write_text(text)
    done = world.pytest(world.out / "plan.json")
    assert done.returncode == 4
    assert file in done.stderr


def test_without_a_plan_the_plugin_does_nothing(world):
    (world.root / "test_x.py").write_text("def test_x():\n    pass\n")
    (world.root / "other.json").write_text("{}")
    done = world.pytest(world.root / "test_x.py")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True)


def test_the_real_workers_are_asked_without_a_double(world):
    """The hook's default is ``compat_matrix.checks``.

    It says what is wrong with this artifact: it has no model.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "-p",
        "compat_matrix.pytest_plugin",
        str(world.out / "plan.json"),
    ]
    done = subprocess.run(
        [*command, "-k", "old and c_api and load"],
        env=world.environment(),
        cwd=world.root,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert outcomes(world)[f"old/fixture@1.15.5/c_api@{V}/load"] not in ("PASS", "NOT_RUN")


def test_signals_reach_the_run(world):
    """SIGINT from outside, as a terminal sends it: the results so far stay, the rest says
    interrupted.
    """
    (world.root / "sleepy.py").write_text(
        "import time, pathlib, pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_compat_run_cell(cell):\n"
        "    if cell.check == 'values':\n"
        f"        pathlib.Path({str(world.root)!r}, 'asleep').touch()\n"
        "        time.sleep(60)\n"
    )
    environment = world.environment()
    environment["PYTHONPATH"] = f"{world.root}{os.pathsep}{environment['PYTHONPATH']}"
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        "--out",
        str(world.root / "run"),
        "-n",
        "1",
    ]
    command += [
        "--cases-dir",
        str(world.cases),
        "--fixtures",
        str(world.fixtures),
        "--",
        "-p",
        "matrix_double",
        "-p",
        "sleepy",
    ]
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (world.root / "asleep").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert "interrupted" in err
    found = {
        record["cell"]: record["outcome"] for record in world.results(world.root / "run").values()
    }
    assert found[f"beta/reference@{V}/-/produce"] == "PASS"
    assert "NOT_RUN" in found.values()
