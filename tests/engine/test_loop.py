"""The in-process loop: cells of a plan, by the executor that the pytest collector has too.

Needs no TensorFlow.
"""

import errno

import pytest
from fake_artifacts import cell, write_artifact
from fake_runtime import fake_runtime

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Decision, Plan
from compat_matrix.cells.results import Observation, ResultsError, read_results
from compat_matrix.cells.run_file import RunFile, RunFileError
from compat_matrix.checks import NotExecuted
from compat_matrix.engine.loop import run_plan
from compat_matrix.engine.result_log import ResultLog
from compat_matrix.hosts.pool import Hosts
from compat_matrix.verdict import Ledger
from savedmodel_common import interrupts

KNOWN = """
schema = 1
[[expect]]
case = "half"
producer = "fixture"
consumer = "tf2"
check = "values"
outcome = "FAIL_VALUE"
message = "element"
kind = "bug"
reason = "Known."
added = 2025-01-31
"""


@pytest.fixture
def hosts(tmp_path):
    with Hosts(tmp_path / "hosts") as hosts:
        hosts.know([fake_runtime(tmp_path)])
        yield hosts


def test_every_cell_of_a_plan_has_a_judged_result(hosts, tmp_path):
    wrong = write_artifact(tmp_path / "wrong", "call=wrong")
    right = write_artifact(tmp_path / "right")
    decided = Decision(Outcome.NOT_APPLICABLE, "it cannot")
    plan = Plan(
        (
            cell("load", right, case="right"),
            cell("values", right, case="right"),
            cell("reexport", right, case="right", decided=decided),
            cell("values", wrong),
            cell("load", tmp_path / "nowhere", case="absent"),
        )
    )
    out = tmp_path / "out"
    found = {
        result.cell: result
        for result in run_plan(
            hosts, out, plan, Ledger.parse(KNOWN), replay=lambda one: f"do {one.id}"
        )
    }
    assert list(found) == [one.id for one in plan]
    outcomes = [(str(result.outcome), result.expected) for result in found.values()]
    assert outcomes == [
        ("PASS", True), ("PASS", True), ("NOT_APPLICABLE", True), ("FAIL_VALUE", True),
        ("SETUP_ERROR", False)
    ]  # fmt: skip
    known = found[plan.cells[3].id]
    assert (
        known.expectation == 0
        and known.replay == f"do {known.cell}"
        and (out / known.evidence["got"]).is_file()
    )
    assert known.details["failed"]["r"]["outcome"] == "FAIL_VALUE"


def test_an_observer_answers_in_place_of_a_worker_and_cannot_end_the_run(hosts, tmp_path):
    def raising(error):
        def observe(one):
            raise error

        return observe

    observers = {
        "a": lambda one: Observation(Outcome.PASS),
        "b": raising(NotExecuted("nothing to do")),
        "c": raising(SystemExit(3)),
        "d": lambda one: "PASS",
        "e": raising(OSError(errno.ENOSPC, "No space left on device")),
    }
    plan = Plan(tuple(cell("load", consumer=name) for name in observers))
    found = list(run_plan(hosts, tmp_path / "out", plan, observers=observers))
    assert [str(result.outcome) for result in found] == [
        "PASS",
        "NOT_RUN",
        "SETUP_ERROR",
        "SETUP_ERROR",
        "ENV_ERROR",  # which a resumed run asks again
    ]
    assert found[1].message == "nothing to do" and found[2].error_class.endswith("SystemExit")
    assert "not str" in found[3].message
    assert (
        (tmp_path / "out" / found[2].evidence["traceback"]).read_text().endswith("SystemExit: 3\n")
    )


def test_what_asks_about_an_artifact_that_was_not_made_is_not_run(hosts, tmp_path):
    plan = Plan((cell("produce"), cell("load", producer="tf2", producer_version="1.0")))
    made, asked = run_plan(
        hosts,
        tmp_path / "out",
        plan,
        observers={"-": lambda one: Observation(Outcome.CRASH, message="it fell")},
    )
    assert (made.outcome, asked.outcome) == (Outcome.CRASH, Outcome.NOT_RUN)
    assert asked.message == "producer failed: CRASH : it fell"


def test_a_process_that_was_asked_to_end_executes_no_further_cell(hosts, tmp_path):
    plan = Plan((cell("load", consumer="a"), cell("load", consumer="b")))

    def observe(one):
        interrupts.note()  # of a signal whose exception was lost
        return Observation(Outcome.PASS)

    out = tmp_path / "out"
    out.mkdir()
    log = ResultLog(out, plan)
    with interrupts.handled(), pytest.raises(KeyboardInterrupt):
        for result in run_plan(hosts, out, plan, observers={"a": observe, "b": observe}):
            log.add(result)
    assert [result.cell for result in read_results(out / "results.jsonl")] == [plan.cells[0].id], (
        "written as it ended"
    )
    log.close(lambda one: "interrupted")
    told = read_results(out / "results.jsonl")
    assert [(str(result.outcome), result.message) for result in told] == [
        ("PASS", ""),
        ("NOT_RUN", "interrupted"),
    ]


def test_a_log_takes_over_results_of_its_plan_and_refuses_edited_ones(tmp_path):
    plan = Plan((cell("load", consumer="a"), cell("load", consumer="b")))
    log = ResultLog(tmp_path, plan)
    with Hosts(tmp_path / "hosts") as hosts:
        for result in run_plan(
            hosts,
            tmp_path,
            plan,
            observers=dict.fromkeys("ab", lambda one: Observation(Outcome.PASS)),
        ):
            log.add(result)
    log.close(lambda one: "")
    later = ResultLog(tmp_path, plan)
    assert set(later.results) == set(plan.by_id)
    later.close(lambda one: "")
    path = tmp_path / "results.jsonl"
    path.write_text(path.read_text().replace('"PASS"', '"CRASH"'))
    with pytest.raises(ResultsError, match="was edited"):
        ResultLog(tmp_path, plan)


def test_the_run_file_is_read_as_it_was_written(tmp_path):
    assert RunFile.read(tmp_path).facts() == {} and list(RunFile.read(tmp_path).by_name) == [
        "local"
    ]
    runtime = fake_runtime(tmp_path)
    written = RunFile.of_now(
        require="serving",
        selection={"case": ["a*"]},
        folders={"cases": "/x"},
        options=["--all-checks"],
        runtimes=[runtime],
    )
    written.write(tmp_path)
    read = RunFile.read(tmp_path)
    assert read == written and str(read.folder("cases")) == "/x" and read.folder("fixtures") is None
    assert not read.is_about_ours and RunFile().is_about_ours and set(read.by_name) == {"fake"}
    assert not {"options", "runtimes"} & set(read.facts())
    wrong = (
        "[]",
        "{}",
        '{"schema": 2}',
        '{"schema": 1, "unknown": 1}',
        '{"schema": 1, "processes": 0}',
        '{"schema": 1, "folders": {"cases": 1}}',
        '{"schema": 1, "folders": {"models": "/x"}}',
    )
    for text in (*wrong, '{"schema": 1, "seconds": "x"}'):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(RunFileError, match=r"run\.json: "):
            RunFile.read(tmp_path)


def test_the_run_file_of_an_older_version_names_its_folders_in_the_selection(tmp_path):
    (tmp_path / "run.json").write_text('{"schema": 1, "selection": {"cases": ["/x"]}}')
    read = RunFile.read(tmp_path)
    assert (str(read.folder("cases")), read.folder("fixtures")) == ("/x", None)
