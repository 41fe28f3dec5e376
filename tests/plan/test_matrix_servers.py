"""Model servers in a plan: what is asked of one, what it means when none is here, how a report
counts it.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from matrix_world import TODAY

from compat_matrix.cases import CASES_DIR
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan, PlanError
from compat_matrix.cells.results import DESELECTED, Observation, Result
from compat_matrix.checks import CHECKS
from compat_matrix.plan.planning import Axes, PlannedArtifact, expand, make_plan
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.ledger import judge_entries
from compat_matrix.verdict.summary import summarise
from savedmodel_servers import drivers
from savedmodel_servers.drivers.base import NotHere, ServerIdentity
from savedmodel_servers.servers import UNKNOWN, server_runtime

LOCAL = Runtime("local", Path("python"), "2.21.0")
STANDIN = Runtime("standin2.21.0", Path("python"), "2.21.0", server="standin", consumer="standin")
REAL = Runtime(
    "serving2.19.1",
    Path("python"),
    "2.19.1",
    server="tensorflow/serving:2.19.1",
    consumer="serving",
)
FIXTURE = PlannedArtifact("f", "fixture", "1.15.5", "/f", frozenset({"signature"}))
CASE = PlannedArtifact(
    "a", "tf2", "2.21.0", "artifacts/a/tf2@2.21.0", frozenset({"signature"}), "local"
)


def planned(*artifacts, runtimes=(LOCAL, STANDIN, REAL), **axes):
    return expand(artifacts, CONSUMERS, CHECKS, Axes(tuple(runtimes), **axes), Ledger())


def served(plan):
    return {cell.id.split("/", 2)[2] for cell in plan if cell.is_served}


def test_every_artifact_is_put_behind_every_server_and_servers_write_nothing():
    plan = planned(FIXTURE, CASE, served_only=True)
    checks = {
        f"{server}/{check}"
        for server in ("standin@2.21.0", "serving@2.19.1")
        for check in ("serve", "serve_grpc", "serve_rest")
    }
    assert served(plan) == checks
    assert {cell.id for cell in plan if not cell.is_served} == {"a/tf2@2.21.0/-/produce"}
    assert plan.by_id["a/tf2@2.21.0/serving@2.19.1/serve"].producer_runtime == "local"
    assert plan.in_phases
    assert not plan.is_grid, "one writer, one version of each server: a matrix of artifacts"


def test_other_consumers_are_asked_as_without_a_server():
    alone, beside = (
        planned(FIXTURE, runtimes=[LOCAL], home=("local",)),
        planned(FIXTURE, runtimes=[LOCAL, STANDIN], home=("local",)),
    )
    assert {cell.id for cell in beside if not cell.is_served} == {cell.id for cell in alone}
    assert not served(alone)


@pytest.mark.parametrize(
    ("checks", "asked"),
    [
        (None, {"serve", "serve_grpc", "serve_rest"}),
        (("load",), {"serve"}),
        (("load", "values"), {"serve", "serve_grpc", "serve_rest"}),
        (("signatures",), set()),
        (("serve_rest",), {"serve_rest"}),
    ],
)
def test_what_a_case_is_limited_to_limits_its_server_too(checks, asked):
    limited = PlannedArtifact("a", "tf2", "2.21.0", "a", frozenset({"signature"}), "local", checks)
    assert {
        cell.check
        for cell in planned(limited, runtimes=[LOCAL, STANDIN], served_only=True)
        if cell.is_served
    } == asked


def test_functions_cannot_be_asked_over_the_wire():
    plan = planned(
        PlannedArtifact("f", "fixture", "1.15.5", "/f", frozenset({"function"})),
        runtimes=[STANDIN],
        served_only=True,
    )
    decided = {cell.check: cell.decided and cell.decided.outcome for cell in plan}
    assert decided == {
        "serve": None,
        "serve_grpc": Outcome.NOT_APPLICABLE,
        "serve_rest": Outcome.NOT_APPLICABLE,
    }


def test_a_server_that_is_not_here_is_not_run_with_the_command_that_provides_it():
    absent = Runtime(
        "x",
        Path("p"),
        "2.19.1",
        unready={"serving": "no image; docker pull x"},
        server="x",
        consumer="serving",
    )
    plan = planned(FIXTURE, runtimes=[absent], served_only=True)
    assert {cell.decided.outcome for cell in plan} == {Outcome.NOT_RUN}
    assert all("docker pull x" in cell.decided.reason for cell in plan)


def test_two_servers_of_one_version_need_a_label_and_a_tensorflow_beside_them_does_not():
    with pytest.raises(PlanError, match="LABEL=RUNTIME"):
        planned(
            FIXTURE,
            runtimes=[REAL, Runtime("other", Path("p"), "2.19.1", server="y", consumer="serving")],
        )
    planned(FIXTURE, runtimes=[REAL, REAL.labelled("nightly"), STANDIN, LOCAL])


def test_two_versions_of_a_server_make_a_grid():
    older = Runtime("older", Path("p"), "2.15.1", server="y", consumer="serving")
    assert planned(FIXTURE, runtimes=[REAL, older], served_only=True).is_grid


def test_a_server_makes_no_artifact(tmp_path):
    cases, fixtures = tmp_path / "cases", tmp_path / "fixtures"
    for folder in (cases, fixtures):
        folder.mkdir()
    shutil.copy(CASES_DIR / "rfc_net2.py", cases)
    axes = Axes((LOCAL, STANDIN), served_only=True)
    plan = make_plan(Ledger(), cases=cases, axes=axes, producers=("tf2",))
    assert {cell.runtime for cell in plan if cell.is_production} == {"local"}


def test_a_pattern_of_the_ledger_selects_no_server():
    def selected(consumer):
        facts = (
            'case = "f"\nproducer = "*"\ncheck = "*"\noutcome = "CRASH"\nkind = "bug"\nreason ='
            ' "x"\nadded = 2025-01-01\n'
        )
        ledger = Ledger.parse(f'schema = 1\n[[expect]]\n{facts}consumer = "{consumer}"\n')
        plan = planned(FIXTURE, home=("local",))
        return {cell.consumer for cell in plan if ledger.entry_for(cell)}, not judge_entries(
            ledger, plan, TODAY
        ).dead_entry

    assert selected("*") == (set(CONSUMERS), True)
    assert selected("s*") == (
        set(),
        True,
    ), "no program of that name is in the plan, so it speaks of another one"
    assert selected("standin") == ({"standin"}, True)


# The verdict
# --------------------------------------------------------------------------------------------------


def cell(index, consumer="serving", decided=None, check="serve"):
    return Cell(
        f"c{index}", "fixture", "1.15.5", consumer, "2.19.1", check, "x", "/x", decided=decided
    )


def exit_code(plan, results, require=False):
    return summarise(plan, results, Ledger(), TODAY, {"require": require})["exit_code"]


ABSENT = Decision(Outcome.NOT_RUN, "no engine; apt-get install docker.io")


def test_absent_servers_are_a_failure_only_under_require():
    plan = Plan((cell(0, decided=ABSENT), cell(1, "tf2", check="load")))
    absent = Result.not_executed(plan.plan_id, plan.cells[0].id, Outcome.NOT_RUN, ABSENT.reason)
    passed = Result.observed(plan.plan_id, plan.cells[1].id, Observation(Outcome.PASS))
    passed.expected = True
    codes = {
        require: exit_code(plan, [absent, passed], require) for require in (False, "serving", True)
    }
    assert codes == {False: 0, "serving": 3, True: 3}


def test_a_run_that_compared_nothing_is_never_green():
    plan = Plan((cell(0, decided=ABSENT),))
    assert (
        exit_code(
            plan,
            [Result.not_executed(plan.plan_id, plan.cells[0].id, Outcome.NOT_RUN, ABSENT.reason)],
        )
        == 3
    )
    other = Plan(
        (cell(0, "tf2", Decision(Outcome.NOT_RUN, "no TensorFlow in runtime local"), "load"),)
    )
    assert (
        exit_code(
            other,
            [
                Result.not_executed(
                    other.plan_id, other.cells[0].id, Outcome.NOT_RUN, "no TensorFlow"
                )
            ],
        )
        == 3
    )


def test_artifacts_that_nobody_is_asked_about_are_no_comparison():
    made = replace(cell(1, "-", check="produce"), consumer_version="", producer_runtime="local")
    plan = Plan((made, cell(1, decided=ABSENT)))
    passed = Result.observed(plan.plan_id, made.id, Observation(Outcome.PASS))
    passed.expected = True
    for reason, code in (
        (ABSENT.reason, 3),
        (DESELECTED, 0),
    ):  # whoever selects productions alone asks for no more
        assert (
            exit_code(
                plan,
                [
                    passed,
                    Result.not_executed(plan.plan_id, plan.cells[1].id, Outcome.NOT_RUN, reason),
                ],
            )
            == code
        )


def test_require_serving_does_not_ask_for_what_nobody_selected():
    plan = Plan((cell(0), cell(1), cell(2, "tf2", check="load")))
    passed, left_out = (Observation(Outcome.PASS), [plan.cells[1], plan.cells[2]])
    results = [Result.observed(plan.plan_id, plan.cells[0].id, passed)]
    results[0].expected = True
    results += [
        Result.not_executed(plan.plan_id, one.id, Outcome.NOT_RUN, DESELECTED) for one in left_out
    ]
    assert exit_code(plan, results, "serving") == 0
    assert exit_code(plan, results, True) == 3


# What a command line names
# -----------------------------------------------------------------------------------------------


class Fake:
    def __init__(self, said):
        self.said = said

    def identify(self):
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    def close(self):
        pass


@pytest.fixture
def says(monkeypatch):
    def set_up(said):
        monkeypatch.setattr(drivers, "of", lambda spec: Fake(said))

    return set_up


def test_a_server_says_itself_what_it_is(says):
    says(ServerIdentity("standin", "2.21.0", "tensorflow/serving:latest"))
    runtime = server_runtime("tensorflow/serving:latest")
    assert (runtime.consumer, runtime.tensorflow_version, runtime.server) == (
        "standin",
        "2.21.0",
        "tensorflow/serving:latest",
    )
    says(ServerIdentity("remote", None))
    assert server_runtime("remote:h:1").tensorflow_version == UNKNOWN


def test_an_absent_image_has_the_version_of_its_tag(says):
    says(NotHere("no image", "docker pull tensorflow/serving:2.19.1"))
    runtime = server_runtime("tensorflow/serving:2.19.1")
    assert (runtime.consumer, runtime.tensorflow_version) == ("serving", "2.19.1")
    assert "docker pull tensorflow/serving:2.19.1" in runtime.unready["serving"]
    assert server_runtime("tensorflow/serving:latest").tensorflow_version == UNKNOWN
    assert server_runtime("old=tensorflow/serving:2.19.1-gpu").name == "old"
    assert server_runtime("standin").consumer == "standin"
