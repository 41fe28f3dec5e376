"""Outcomes, cells and the plan."""

import json
from pathlib import Path

import jsonschema
import pytest
from matrix_world import FUNCTION, SIGNATURE, World, entry

import compat_matrix
from compat_matrix.cases import all_cases
from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan, PlanError, parse_cell_id
from compat_matrix.cells.results import Observation
from compat_matrix.checks import CHECKS
from compat_matrix.plan.planning import (
    Axes,
    PlannedArtifact,
    case_artifacts,
    expand,
    fixture_artifacts,
    make_plan,
)
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger

SCHEMAS = Path(compat_matrix.__path__[0]) / "schemas"
RUNTIME = Runtime("local", Path("python"), "2.21.0")
NO_TENSORFLOW = Runtime("local", Path("python"), None)
PRODUCTION = Cell("a", "tf2", "2.21.0", "-", "", "produce", "local", "artifacts/a/tf2@2.21.0")
LOAD = Cell(
    "a", "tf2", "2.21.0", "c_api", "2.21.0", "load", "local", "artifacts/a/tf2@2.21.0", timeout=5
)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_outcomes_are_a_closed_list():
    with pytest.raises(ValueError, match="SKIPPED"):
        Outcome("SKIPPED")
    with pytest.raises(ValueError, match="SKIPPED"):
        Observation("SKIPPED")


@pytest.mark.parametrize("outcome", ["NOT_RUN", "NOT_APPLICABLE"])
def test_a_check_cannot_observe_that_it_did_not_run(outcome):
    with pytest.raises(ValueError, match="decided before"):
        Observation(outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_plan_decides_only_what_needs_no_execution(outcome):
    if outcome in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE):
        assert Decision(outcome, "why").reason == "why"
        with pytest.raises(ValueError):
            Decision(outcome, "")
    else:
        with pytest.raises(ValueError):
            Decision(outcome, "why")


def test_what_each_outcome_means_to_the_gate():
    ours = {Outcome.SETUP_ERROR, Outcome.ENV_ERROR}
    fine = {Outcome.PASS, Outcome.NOT_APPLICABLE, Outcome.NOT_RUN}
    assert {o for o in Outcome if o.harness_failure} == ours
    assert {o for o in Outcome if o.gate_failure} == set(Outcome) - fine
    assert {o for o in Outcome if o.expectable} == set(Outcome) - fine - ours - {Outcome.UNSTABLE}


@pytest.mark.parametrize("cell", [PRODUCTION, LOAD])
def test_a_cell_id_and_its_parts_are_the_same(cell):
    parts = parse_cell_id(cell.id)
    assert parts == {name: getattr(cell, name) for name in parts}
    assert Cell.from_json(cell.to_json()) == cell


@pytest.mark.parametrize(
    "text",
    [
        *("", "a/tf2@1/tf2@1", "a/tf2/tf2@1/load", "a/tf2@1/-/load", "a/tf2@1/tf2@1/produce"),
        *(
            "../x/tf2@1/tf2@1/load",
            "a/tf2@1/tf2@1/load/x",
            "a b/tf2@1/tf2@1/load",
            "a/tf2@1/tf2@1/load\n",
            "a/tf2@/tf2@1/load",
        ),
    ],
)
def test_what_is_no_cell_id(text):
    with pytest.raises(PlanError, match="a cell id"):
        parse_cell_id(text)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "b/tf2@1/tf2@1/load"},
        {"check": "values"},
        {"more": 1},
        {"decided": {"outcome": "PASS"}},
    ],
)
def test_a_cell_that_contradicts_itself_is_refused(change):
    with pytest.raises(PlanError):
        Cell.from_json({**LOAD.to_json(), **change})


def artifact(**changes):
    facts = {
        "case": "a",
        "producer": "tf2",
        "version": "2.21.0",
        "path": "x",
        "kinds": frozenset({"signature"}),
        "runtime": "local",
    }
    return PlannedArtifact(**{**facts, **changes})


def planned(*artifacts, runtime=RUNTIME, ledger="", consumers=CONSUMERS):
    return expand(
        artifacts,
        consumers,
        CHECKS,
        Axes((runtime,), home=(runtime.name,)),
        Ledger.parse("schema = 1\n" + ledger),
    )


def test_the_product_of_all_axes_in_order():
    plan = planned(artifact(case="b"), artifact(runtime="", producer="fixture", version="1.15.5"))
    ids = [cell.id for cell in plan]
    pairs = [cell.id for cell in plan if cell.sides]
    assert pairs == [
        cell.id.replace("/cpp@", "/c_api+cpp@")
        for cell in plan
        if cell.consumer == "cpp" and not cell.decided
    ]
    assert len(ids) == 1 + len(pairs) + 2 * sum(
        len(CHECKS if one.checks is None else one.checks) for one in CONSUMERS.values()
    )
    assert ids[0] == "a/fixture@1.15.5/tf2@2.21.0/load"
    first_of_b = next(i for i, cell_id in enumerate(ids) if cell_id.startswith("b/"))
    assert ids[first_of_b] == "b/tf2@2.21.0/-/produce"
    assert all(cell_id.startswith("b/") for cell_id in ids[first_of_b:])
    consumers = list(
        dict.fromkeys(parse_cell_id(cell_id)["consumer"] for cell_id in ids[:first_of_b])
    )
    assert consumers == [*CONSUMERS, "c_api+cpp"]
    assert [parse_cell_id(cell_id)["check"] for cell_id in ids[: len(CHECKS)]] == list(CHECKS)


def decisions(plan):
    return {(cell.consumer, cell.check): cell.decided for cell in plan}


def test_capabilities_decide_what_does_not_apply():
    able = Consumer(
        "able", "x", frozenset({"describe", "functions", "resave", "variables", "tags"}), ""
    )
    unable = Consumer("unable", "x", frozenset(), "")
    plan = planned(
        artifact(kinds=frozenset({"function"})), consumers={"able": able, "unable": unable}
    )
    found = decisions(plan)
    assert all(found["able", check] is None for check in CHECKS)
    reasons = {check: found["unable", check] and found["unable", check].reason for check in CHECKS}
    assert reasons["load"] is reasons["signatures"] is None
    assert "no request" in reasons["values"]
    assert "cannot resave" in reasons["reexport"]
    assert {d.outcome for d in found.values() if d} == {Outcome.NOT_APPLICABLE}


def test_a_case_may_ask_for_some_checks_only():
    plan = planned(artifact(checks=("load", "values")))
    assert {cell.check for cell in plan} == {"produce", "load", "values"}


def test_a_consumer_may_be_for_some_checks_only():
    plan = planned(artifact())
    asked = {name: {cell.check for cell in plan if cell.consumer == name} for name in CONSUMERS}
    assert asked["reference"] == asked["tf2"] == set(CHECKS)
    assert asked["reference_to_tf2"] == asked["tf2_to_reference"] == {"reexport"}
    plan = planned(artifact(checks=("load", "values")))
    assert {cell.check for cell in plan} == {"produce", "load", "values"}


def test_a_production_that_is_expected_to_fail_leaves_nothing_to_ask():
    known = entry("a", "tf2", "-", "produce", reason="the RFC forbids it")
    plan = planned(artifact(), artifact(producer="reference"), ledger=known)
    assert {cell.producer for cell in plan} == {"tf2", "reference"}
    for cell in plan:
        if cell.producer == "reference" or cell.is_production:
            assert cell.decided is None or "expected to refuse" not in cell.decided.reason
        else:
            assert (cell.decided.outcome, "RFC" in cell.decided.reason) == (
                Outcome.NOT_APPLICABLE,
                True,
            )


def test_without_tensorflow_cells_are_planned_and_not_run():
    plan = planned(artifact(version="absent"), runtime=NO_TENSORFLOW)
    outcomes = {cell.decided.outcome for cell in plan}
    assert outcomes == {Outcome.NOT_RUN, Outcome.NOT_APPLICABLE}
    assert any('(pip install "savedmodel-compat[tf]")' in cell.decided.reason for cell in plan)
    assert plan.cells[1].id == "a/tf2@absent/tf2@absent/load"


@pytest.mark.parametrize(
    ("version", "refused"),
    [("2.11.0", True), ("2.12.0rc1", True), ("2.12.0", False), ("2.13.0rc1", False)],
)
def test_a_case_may_require_a_version(world, version, refused):
    world.case("newer", [SIGNATURE], 'REQUIRES = "tensorflow>=2.12"')
    runtime = Runtime("local", Path("python"), version)
    newer = [a for a in case_artifacts(all_cases(world.cases), runtime) if a.case == "newer"]
    plan = planned(*newer, runtime=runtime)
    asked = {cell.check for cell in plan if not cell.decided}
    assert (asked == set()) == refused
    if refused:
        assert all(
            "tensorflow>=2.12" in c.decided.reason and str(version) in c.decided.reason
            for c in plan
        )


def test_what_the_files_of_a_fixture_say(world):
    world.fixture("both", "1.4.1", kinds=("signature", "function"))
    found = {a.case: a for a in fixture_artifacts(world.fixtures)}
    assert (found["both"].version, found["both"].kinds) == ("1.4.1", {"signature", "function"})
    assert Path(found["both"].path) == world.fixtures / "both"
    assert not found["both"].runtime


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("provenance.json", "{", "Expecting"),
        ("provenance.json", '{"schema": 2}', "not of schema 1"),
        ("provenance.json", '{"schema": 1, "case": "old"}', "lacks 'producer'"),
        ("io/io.json", "[]", "not of schema 1"),
        ("io/io.json", '{"schema": 1}', "lacks 'requests'"),
    ],
)
def test_a_fixture_that_cannot_be_read_is_named(world, file, text, problem):
    (world.fixtures / "old" / file).write_text(text)
    with pytest.raises(PlanError, match=problem) as caught:
        fixture_artifacts(world.fixtures)
    assert str(world.fixtures / "old") in str(caught.value)


def test_a_case_name_that_makes_no_cell_id_is_found_while_planning():
    with pytest.raises(PlanError, match="a cell id"):
        planned(artifact(case="a/b"))


def test_planned_twice():
    with pytest.raises(PlanError, match="planned twice"):
        planned(artifact(), artifact())


def test_a_plan_file_is_read_as_written(tmp_path):
    plan = planned(artifact(kinds=frozenset(), timeout=2.5))
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data == plan.to_json()
    jsonschema.validate(data, json.loads((SCHEMAS / "plan.schema.json").read_text()))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda data: data["cells"].pop(),
        lambda data: data["cells"][3].update(timeout=99),
        lambda data: data.update(schema=2),
        lambda data: data.update(plan_id="0" * 64),
    ],
)
def test_a_plan_that_was_changed_is_refused(tmp_path, tamper):
    data = planned(artifact()).to_json()
    tamper(data)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(PlanError):
        Plan.read(tmp_path / "plan.json")


def test_the_plan_id_is_the_questions_not_the_place(world):
    plan = planned(artifact())
    assert (
        planned(artifact(path="/elsewhere")).plan_id == plan.plan_id == planned(artifact()).plan_id
    )
    assert planned(artifact(timeout=3)).plan_id != plan.plan_id
    assert planned(artifact(kinds=frozenset())).plan_id != plan.plan_id


def test_the_plan_of_this_checkout():
    plan = make_plan(Ledger())
    assert len(plan.cells) >= 600
    root = Path(__file__).parents[2]
    committed = {path.parent.name for path in (root / "fixtures_v1").glob("*/provenance.json")}
    committed |= {path.parent.name for path in (root / "fixtures_v2").glob("*/case.py")}
    assert {cell.case for cell in plan if cell.producer == "fixture"} == committed
    assert {cell.case for cell in plan if cell.is_production} == {case.name for case in all_cases()}
    assert {cell.consumer for cell in plan} == {*CONSUMERS, "-", "c_api+cpp"}


def test_function_requests_are_asked_of_those_who_can(world):
    world.case("gamma", [FUNCTION])
    plan = make_plan(Ledger(), world.fixtures, world.cases)
    asked = {
        c.consumer: c.decided
        for c in plan
        if (c.case, c.producer, c.check) == ("gamma", "tf2", "values")
    }
    not_applicable = {
        name
        for name, decided in asked.items()
        if decided and decided.outcome is Outcome.NOT_APPLICABLE
    }
    assert not_applicable == {
        name for name, consumer in CONSUMERS.items() if "functions" not in consumer.capabilities
    }
