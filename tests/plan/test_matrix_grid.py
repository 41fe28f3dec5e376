"""Plans over many runtimes: what is asked of whom, in which order, and what the report makes of
it.
"""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from matrix_world import SIGNATURE, World

from compat_matrix.cases import all_cases
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Decision, PlanError
from compat_matrix.cells.results import DESELECTED, Observation, Result
from compat_matrix.checks import CHECKS
from compat_matrix.plan.changed import Changes, ChangesUnknown, changed_since, effect_of
from compat_matrix.plan.planning import Axes, PlannedArtifact, case_artifacts, expand
from compat_matrix.report import grid
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import NO_ENTRIES, Ledger, tally
from savedmodel_compat.cli import main

ROOT = Path(__file__).parents[2]
OLD = Runtime(
    "tf2.4", Path("old"), "2.4.4", lacks={"reference": "needs 2.12", "c_api": "not exported"}
)
NEW = Runtime("tf2.21", Path("new"), "2.21.0")
FIXTURE = PlannedArtifact("f", "fixture", "1.15.5", "/f", frozenset({"signature"}))


def made_by(runtime, case="a", **facts):
    version = runtime.tensorflow_version
    return PlannedArtifact(
        case,
        "tf2",
        version,
        f"artifacts/{case}/tf2@{version}",
        frozenset({"signature"}),
        runtime.name,
        **facts,
    )


def planned(*artifacts, runtimes=(OLD, NEW), **axes):
    return expand(artifacts, CONSUMERS, CHECKS, Axes(tuple(runtimes), **axes), Ledger())


def test_everybody_reads_what_everybody_wrote():
    plan = planned(FIXTURE, made_by(OLD), made_by(NEW))
    pairs = {
        (c.producer, c.producer_version, c.consumer_version)
        for c in plan
        if not c.is_production and c.consumer != "evaluator"
    }
    assert pairs == {
        (p, w, r)
        for p, w in (("fixture", "1.15.5"), ("tf2", "2.4.4"), ("tf2", "2.21.0"))
        for r in ("2.4.4", "2.21.0")
    }
    assert {(c.id, c.runtime, c.producer_runtime) for c in plan if c.is_production} == {
        ("a/tf2@2.4.4/-/produce", "tf2.4", "tf2.4"),
        ("a/tf2@2.21.0/-/produce", "tf2.21", "tf2.21"),
    }
    own = {(c.id, c.runtime) for c in plan if c.consumer == "evaluator" and c.check == "values"}
    assert own == {
        ("a/tf2@2.4.4/evaluator@1/values", "tf2.4"),
        ("a/tf2@2.21.0/evaluator@1/values", "tf2.4"),
        ("f/fixture@1.15.5/evaluator@1/values", "tf2.4"),
    }
    reading = plan.by_id["a/tf2@2.4.4/tf2@2.21.0/values"]
    assert (reading.runtime, reading.producer_runtime) == ("tf2.21", "tf2.4")
    assert plan.by_id["f/fixture@1.15.5/tf2@2.4.4/values"].producer_runtime == ""


def test_productions_come_first_then_one_runtime_after_the_other():
    plan = planned(FIXTURE, made_by(NEW), made_by(OLD))
    kinds = [(cell.is_production, cell.runtime) for cell in plan]
    assert list(dict.fromkeys(kinds)) == [
        (True, "tf2.4"),
        (True, "tf2.21"),
        (False, "tf2.4"),
        (False, "tf2.21"),
    ]


def test_one_question_for_a_pair_the_strongest_there_is():
    functions = made_by(OLD, "b")
    functions = PlannedArtifact(**{**vars(functions), "kinds": frozenset({"function"})})
    plan = planned(made_by(OLD), functions)
    assert {c.check for c in plan if c.case == "a" and not c.is_production} == {"values"}
    asked = {c.consumer: c.check for c in plan if c.case == "b" and not c.is_production}
    assert asked["tf2"] == "values"
    assert asked["c_api"] == asked["v1_session"] == "load"


def test_the_home_runtime_is_asked_everything_about_what_is_its_own():
    plan = planned(FIXTURE, made_by(OLD), made_by(NEW), home=("tf2.21",))
    asked = {}
    for cell in plan:
        if cell.consumer == "v1_session":
            asked.setdefault((cell.producer_version, cell.consumer_version), set()).add(cell.check)
    assert (
        asked["1.15.5", "2.21.0"]
        == asked["2.21.0", "2.21.0"]
        > {"load", "values", "relocate", "reexport"}
    )
    assert (
        asked["2.4.4", "2.21.0"]
        == asked["2.21.0", "2.4.4"]
        == asked["1.15.5", "2.4.4"]
        == {"values"}
    )


def test_given_checks_are_asked_of_all():
    plan = planned(FIXTURE, made_by(OLD), checks=("load", "signatures"))
    assert {c.check for c in plan if not c.is_production} == {"load", "signatures"}


def test_what_a_runtime_lacks_does_not_apply():
    plan = planned(FIXTURE)
    assert plan.by_id["f/fixture@1.15.5/reference@2.4.4/values"].decided == Decision(
        Outcome.NOT_APPLICABLE, "needs 2.12"
    )
    assert plan.by_id["f/fixture@1.15.5/reference@2.21.0/values"].decided is None


def test_nobody_is_asked_about_what_is_not_made():
    plan = planned(made_by(OLD, refused="the case requires 2.12"), made_by(NEW))
    assert plan.by_id["a/tf2@2.4.4/-/produce"].decided == Decision(
        Outcome.NOT_APPLICABLE, "the case requires 2.12"
    )
    assert {c.producer_version for c in plan if not c.is_production} == {"2.21.0"}


def test_a_producer_that_a_runtime_lacks_makes_nothing(tmp_path):
    world = World(tmp_path)
    world.case("gamma", [SIGNATURE])
    without = Runtime("tf1.13", Path("p"), "1.13.2", lacks={"tf2": "came with 2.0"})
    refused = {
        a.producer: a.refused
        for a in case_artifacts(all_cases(world.cases), without)
        if a.case == "gamma"
    }
    assert refused["tf2"] == "came with 2.0"


@pytest.mark.parametrize(
    "other", [Runtime("tf2.21", Path("x"), "2.20.0"), Runtime("other", Path("x"), "2.21.0")]
)
def test_runtimes_that_cannot_be_told_apart(other):
    with pytest.raises(PlanError, match="LABEL=RUNTIME"):
        planned(FIXTURE, runtimes=(NEW, other))


def test_a_label_tells_two_of_one_version_apart():
    labelled = NEW.labelled("candidate")
    assert (labelled.name, labelled.tensorflow_version, labelled.python) == (
        "candidate",
        "2.21.0+candidate",
        NEW.python,
    )
    plan = planned(FIXTURE, runtimes=(NEW, labelled))
    assert "f/fixture@1.15.5/tf2@2.21.0+candidate/values" in plan.by_id


# The report
# --------------------------------------------------------------------------------------------------


def results_of(plan, outcomes):
    """PASS for every cell to run, except what ``outcomes`` says by the reader's version."""
    found = {}
    for cell in plan:
        if cell.decided:
            continue
        outcome, expected = outcomes.get(
            (cell.producer_version, cell.consumer_version), ("PASS", True)
        )
        if outcome == "NOT_RUN":
            found[cell.id] = Result.not_executed(plan.plan_id, cell.id, Outcome.NOT_RUN, expected)
        elif outcome:
            found[cell.id] = Result.observed(plan.plan_id, cell.id, Observation(outcome))
            found[cell.id].expected = expected
    return found


def test_a_field_counts_cells_and_says_what_became_of_the_rest():
    plan = planned(made_by(OLD), made_by(OLD, "b"), made_by(NEW))
    facts = tally.tally(
        plan,
        results_of(
            plan,
            {
                ("2.4.4", "2.4.4"): ("LOAD_ERROR", True),
                ("2.21.0", "2.4.4"): ("LOAD_ERROR", False),
                ("2.21.0", "2.21.0"): (None, None),
            },
        ),
    )
    (table,) = [t for t in tally.tables(facts) if t["consumer"] == "tf2"]
    assert [
        (writer, [grid.field_words(field) for field in fields]) for writer, fields in table["rows"]
    ] == [
        ("2.4.4", ["0/2", "2/2"]),
        ("2.21.0", ["0/1 !1", "0/1 ?1"]),
    ]
    assert grid.markdown(table) == [
        "| written by | 2.4 | 2.21 |",
        "|---|---|---|",
        "| 2.4 | 0/2 | 2/2 |",
        "| 2.21 | 0/1 !1 | 0/1 ?1 |",
    ]
    assert facts["made"] == {"tf2": {"2.4.4": {"passed": 2}, "2.21.0": {"passed": 1}}}
    # What a runtime lacks is in no field.
    assert "2.4.4" not in facts["read"]["tf2"]["2.4.4"]["reference"]


def test_what_nobody_selected_is_in_no_field():
    plan = planned(made_by(OLD), made_by(NEW))
    facts = tally.tally(
        plan,
        results_of(
            plan,
            {("2.4.4", "2.4.4"): ("NOT_RUN", DESELECTED), ("2.4.4", "2.21.0"): ("NOT_RUN", "?")},
        ),
    )
    assert "2.4.4" not in facts["read"]["tf2"]["2.4.4"]["tf2"]
    assert facts["read"]["tf2"]["2.4.4"]["tf2"]["2.21.0"] == {"not_run": 1}


# What changed
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "changes"),
    [
        (
            ["docs/index.md", "tests/cli/test_cli.py", "README.md", "compat_matrix/report/html.py"],
            Changes(None, frozenset(), frozenset()),
        ),
        (
            ["compat_matrix/cases/tree_tuples.py"],
            Changes(None, frozenset({"tree_tuples"}), frozenset()),
        ),
        (
            ["fixtures_v1/main_op/model/saved_model.pb"],
            Changes(None, frozenset({"main_op"}), frozenset()),
        ),
        (["fixtures_v1/recorder.py"], Changes("fixtures_v1/recorder.py", frozenset(), frozenset())),
        (
            ["compat_matrix/runtimes/locks/tf2.12.1.txt"],
            Changes(None, frozenset(), frozenset({"tf2.12.1"})),
        ),
        (
            ["compat_matrix/cases/a.py", "compat_matrix/workers/protocol.py"],
            Changes("compat_matrix/workers/protocol.py", frozenset({"a"}), frozenset()),
        ),
        (
            ["reference_impl/format/bundle/reader.py"],
            Changes("reference_impl/format/bundle/reader.py", frozenset(), frozenset()),
        ),
    ],
)
def test_what_a_change_can_have_an_effect_on(names, changes):
    assert effect_of(names) == changes


def test_git_says_what_changed(tmp_path):
    def git(*command):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    (tmp_path / "compat_matrix" / "cases").mkdir(parents=True)
    (tmp_path / "compat_matrix" / "cases" / "kept.py").write_text("")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    (tmp_path / "compat_matrix" / "cases" / "new.py").write_text("")
    assert changed_since("HEAD", tmp_path).cases == {"new"}
    (tmp_path / "compat_matrix" / "cases" / "kept.py").write_text("changed")
    assert changed_since("HEAD", tmp_path).cases == {"kept", "new"}
    with pytest.raises(ChangesUnknown, match="nowhere"):
        changed_since("nowhere", tmp_path)


GRID_CASES = "tree_tuples,rfc_net2,half_plus_two"


@pytest.fixture
def grid_of(monkeypatch, tmp_path):
    """Arguments of `matrix run --grid` -> its plan and what it would run, when a case and the lock of TF 2.12
    have changed.
    """
    asked = [replace(NEW, spec="tf2.21"), Runtime("old", Path("p"), "2.12.1+old", spec="old=2.12")]
    changes = Changes(None, frozenset({"tree_tuples"}), frozenset({"tf2.12.1-py3.11"}))
    orders = []
    monkeypatch.setattr(
        "compat_matrix.commands.parts.planned.asked_runtimes", lambda names, install: tuple(asked)
    )
    monkeypatch.setattr("compat_matrix.plan.changed.changed_since", lambda revision: changes)
    monkeypatch.setattr(
        "compat_matrix.engine.running.carry_out",
        lambda *given: orders.append(given[1]) or {"exit_code": 0},
    )

    def run(*arguments):
        command = ["matrix", "run", "--grid", "--out", str(tmp_path), "--changed-since", "main"]
        command += arguments
        done = CliRunner().invoke(main, command, standalone_mode=False)
        assert done.exception is None, done.output
        return orders[-1].plan, [orders[-1].plan.by_id[cell] for cell in orders[-1].chosen]

    return run


def test_a_run_of_one_tensorflow_too_runs_only_what_changed(monkeypatch, tmp_path):
    orders = []
    changes = Changes(None, frozenset({"tree_tuples"}), frozenset())
    monkeypatch.setattr("compat_matrix.plan.changed.changed_since", lambda revision: changes)
    monkeypatch.setattr(
        "compat_matrix.engine.running.carry_out",
        lambda *given: orders.append(given[1]) or {"exit_code": 0},
    )
    words = ["matrix", "run", "--out", str(tmp_path), "--changed-since", "main"]
    assert CliRunner().invoke(main, [*words, "--case", "tree_*"]).exit_code == 0
    assert {cell.split("/")[0] for cell in orders[0].chosen} == {"tree_tuples"}
    assert orders[0].selection["changed_since"] == ["main"]
    done = CliRunner().invoke(main, [*words, "--case", "op_*"])
    assert (
        done.exit_code,
        "selected cell" in done.stderr,
        len(orders),
    ) == (64, True, 1)


def test_the_cells_of_a_changed_case_and_of_a_changed_lock_are_run(grid_of):
    plan, chosen = grid_of("--case", GRID_CASES)
    assert {
        cell.case for cell in chosen if {cell.runtime, cell.producer_runtime} <= {"tf2.21", ""}
    } == {"tree_tuples"}
    renewed = {cell.id for cell in plan if "old" in (cell.runtime, cell.producer_runtime)}
    assert renewed < {cell.id for cell in chosen} < set(plan.by_id)
    assert {
        (cell.runtime, cell.producer_runtime) for cell in chosen if cell.case == "rfc_net2"
    } == {
        ("old", "old"),
        ("old", "tf2.21"),
        ("tf2.21", "old"),
    }


def test_a_changed_case_is_run_whatever_the_usual_ones_are(grid_of):
    _, chosen = grid_of("--case", "rfc_net2")
    assert {cell.case for cell in chosen} == {"rfc_net2", "tree_tuples"}


# A real one
# --------------------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_two_runtimes_write_and_read(tmp_path, processes):
    (tmp_path / "cases").mkdir()
    for name in ("fn_flat", "tree_tuples"):
        shutil.copy(ROOT / f"compat_matrix/cases/{name}.py", tmp_path / "cases")
    for name in ("half_plus_two", "simple_save"):
        shutil.copytree(ROOT / "fixtures_v1" / name, tmp_path / "fixtures" / name)
    command = ["matrix", "run", "--out", str(tmp_path / "out"), "-n", processes]
    command += ["--cases-dir", str(tmp_path / "cases"), "--fixtures", str(tmp_path / "fixtures")]
    command += [
        "--runtime",
        "a=local",
        "--runtime",
        "b=local",
        "--case",
        "simple_save",
        "--case",
        "tree_tuples",
    ]
    command += [
        "--consumer",
        "v1_session",
        "--consumer",
        "c_api",
        "--consumer",
        "-",
        "--expectations",
        str(NO_ENTRIES),
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    facts = [
        json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    ]
    passed = {fact["cell"]: fact for fact in facts if fact["outcome"] == "PASS"}
    version = next(iter(passed.values()))["versions"]["tensorflow"]
    for writer in "ab":
        for reader in "ab":
            for consumer in ("v1_session", "c_api"):
                cell = f"tree_tuples/tf2@{version}+{writer}/{consumer}@{version}+{reader}/values"
                assert cell in passed, sorted(passed)
                assert "--runtime" in passed[cell]["replay"]
    assert f"simple_save/fixture@1.15.5/c_api@{version}+b/values" in passed
    assert (
        f"tree_tuples/tf2@{version}+a/c_api@{version}+a/relocate" in passed
    )  # the first runtime is asked everything
    assert f"tree_tuples/tf2@{version}+b/c_api@{version}+b/relocate" not in passed
    assert "written by tf2, read by c_api" in done.output
    again = CliRunner().invoke(main, [*command, "--resume"])
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (again.exit_code, summary["observed"]) == (
        0,
        len(passed),
    )  # nothing was left to do, and nothing is forgotten
    assert summary["not_applicable"] > 0 and summary["by_outcome"]["NOT_RUN"] > 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "read by each TensorFlow" in page and "Everything as expected" in page
