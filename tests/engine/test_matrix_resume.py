"""``savedmodel-compat matrix run --resume``: what is kept of an earlier run, and what is asked
again.
"""

import json
import os
import subprocess
import sys
import time

import pytest
from matrix_world import FAIL, FUNCTION, SIGNATURE, VERSION, cell, entry, outcomes, small_world

ARTIFACTS = [
    f"{case}/{producer}@{VERSION}"
    for case in ("alpha", "beta")
    for producer in ("reference", "tf2")
]


@pytest.fixture
def small(tmp_path):
    return small_world(tmp_path)


def test_an_interrupted_run_is_resumed(small):
    small.behave([cell("c_api", "load"), {"interrupt": True}])
    done = small.run()
    assert (done.returncode, done.stdout) == (130, "")
    assert "interrupted" in done.stderr and "--resume" in done.stderr
    assert not (small.out / "summary.json").exists()
    assert small.command("matrix", "report", small.out).returncode == 3
    before = outcomes(small)
    missing = {one for one, outcome in before.items() if outcome == "NOT_RUN"}
    assert cell("c_api", "load") in missing
    assert f"beta/tf2@{VERSION}/-/produce" not in missing
    assert "interrupted" in {item["reason"] for item in small.summary()["not_run"]}
    executed = len(small.executed())
    small.behave()
    done = small.run("--resume")
    assert done.returncode == 0, done.stderr
    assert {one for _, one in small.executed()[executed:]} == missing
    assert list(outcomes(small)) == list(before)
    assert small.summary()["observed"] == small.summary()["planned"]
    executed = len(small.executed())
    assert small.run("--resume").returncode == 0  # nothing is missing any more
    assert len(small.executed()) == executed


def test_a_run_that_another_program_began_says_so(small):
    small.behave([cell("c_api", "load"), {"interrupt": True}])
    small.run()
    kept = len(
        [
            outcome
            for outcome in outcomes(small).values()
            if outcome not in ("NOT_RUN", "NOT_APPLICABLE")
        ]
    )
    file = small.out / "run.json"
    told = json.loads(file.read_text())
    assert told["earlier"] == []
    file.write_text(json.dumps({**told, "revision": "0123abc"}))
    small.behave()
    done = small.run("--resume")
    assert f"{kept} results" in done.stderr and "0123abc. Run without --resume" in done.stderr
    assert json.loads(file.read_text())["earlier"] == ["0123abc"]
    again = small.run("--resume")
    assert "0123abc" in again.stderr


def test_resuming_tries_again_what_the_machine_spoilt_and_nothing_else(small):
    small.behave(["*/c_api@*/load", {"outcome": "ENV_ERROR"}], ["*/tf2@*/values", FAIL])
    assert small.run().returncode == 4
    executed = len(small.executed())
    small.behave()
    assert small.run("--resume").returncode == 1
    assert {one for _, one in small.executed()[executed:]} == {
        cell("c_api", "load", artifact) for artifact in ARTIFACTS[2:]
    }


def passed(small):
    lines = map(json.loads, (small.out / "results.jsonl").read_text().splitlines())
    return {line["cell"] for line in lines if line["outcome"] == "PASS"}


def test_a_run_is_resumed_cell_by_cell_when_the_plan_has_grown(small):
    small.run("--consumer", "c_api")
    before, ran = passed(small), len(small.executed())
    small.case("gamma", [FUNCTION])
    assert small.run("--resume").returncode == 0
    executed = {one for _, one in small.executed()[ran:]}
    assert before and not executed & before
    assert any(one.startswith("gamma/") for one in executed)
    summary = small.summary(small.out)
    assert summary["observed"] == summary["planned"]


def test_results_are_kept_when_a_session_ended_before_it_wrote_its_plan(small):
    small.run("--consumer", "c_api")
    before = (small.out / "plan.json").read_bytes()
    small.case("gamma", [FUNCTION])
    assert small.run("--resume").returncode == 0
    results, ran = small.results(), len(small.executed())
    (small.out / "plan.json").write_bytes(before)
    assert small.run("--resume").returncode == 0
    assert (len(small.executed()), small.results()) == (ran, results)


def test_what_is_asked_otherwise_is_asked_again(small):
    small.case("gamma", [SIGNATURE])
    small.run("--consumer", "c_api")
    ran = len(small.executed())
    small.case("gamma", [SIGNATURE], "TIMEOUT = 7")
    assert small.run("--resume", "--consumer", "c_api").returncode == 0
    executed = {one for _, one in small.executed()[ran:]}
    assert executed and all(one.startswith("gamma/") for one in executed)


def test_a_model_that_changed_is_asked_again(small):
    """A case that builds another model, and an artifact that was written anew in the same
    folder.
    """
    small.fixture("old")
    small.case("gamma", [SIGNATURE])
    assert small.run().returncode == 0
    ran = len(small.executed())
    with (small.cases / "beta.py").open("a") as case:
        case.write("# another model\n")
    provenance = small.fixtures / "old" / "provenance.json"
    provenance.write_text(
        json.dumps({**json.loads(provenance.read_text()), "files": {"model/saved_model.pb": "0"}})
    )
    small.behave(["old/*/values", FAIL], ["beta/*/c_api@*", FAIL])
    assert small.run("--resume").returncode == 1
    again = {one for _, one in small.executed()[ran:]}
    asked = {cell for cell in small.results() if cell.startswith(("beta/", "old/"))}
    assert again == {one for one in asked if outcomes(small)[one] != "NOT_APPLICABLE"} and again


@pytest.mark.parametrize(
    "name", ["model/saved_model.pb", "model/variables/variables.data-00000-of-00001", "io/in.npz"]
)
def test_an_artifact_that_was_edited_in_place_is_asked_again(name, small):
    """Its provenance.json is as it was, its size too, and so are the times of its files."""
    file = small.fixture("old") / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"before")
    assert small.run("--consumer", "c_api").returncode == 0
    ran, before = len(small.executed()), file.stat()
    file.write_bytes(b"after!")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    small.run("--consumer", "c_api", "--resume")
    assert {one.partition("/")[0] for _, one in small.executed()[ran:]} == {"old"}


def test_results_taken_over_are_judged_by_the_ledger_of_today(small):
    small.behave(["*/c_api@*/load", FAIL])
    assert small.run().returncode == 1
    small.expect(entry("beta", consumer="c_api", check="load"))
    ran = len(small.executed())
    assert small.run("--resume").returncode == 0
    assert len(small.executed()) == ran
    failed = [record for record in small.results().values() if record["outcome"] == "LOAD_ERROR"]
    assert failed and all(
        (record["expected"], record["expectation"]) == (True, 0) for record in failed
    )


def test_another_plan_cannot_be_resumed(small):
    small.run("--consumer", "c_api")
    results = (small.out / "results.jsonl").read_bytes()
    (small.cases / "beta.py").rename(small.cases / "delta.py")
    done = small.run("--resume")
    assert (done.returncode, "another plan" in done.stderr) == (64, True)
    assert (small.out / "results.jsonl").read_bytes() == results


def test_a_run_is_resumed_when_the_ledger_came_to_expect_a_refusal(small):
    """Then the questions about what is not made are out of the plan; the others were asked, and are
    not asked again.
    """
    small.behave(["beta/tf2@*/-/produce", FAIL])
    assert small.run().returncode == 1
    executed = len(small.executed())
    small.expect(entry("beta", "tf2", "-", "produce"))
    done = small.run("--resume")
    assert (done.returncode, len(small.executed())) == (0, executed), done.stdout
    assert small.summary()["not_run"] == []


def test_a_resumed_run_may_have_lost_its_last_line(small):
    small.run()
    path = small.out / "results.jsonl"
    # The last line is of a cell that nobody executes: it does not apply to the evaluator.
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1])[:-40])
    executed = len(small.executed())
    assert small.run("--resume").returncode == 0
    assert len(small.executed()) == executed + 1


@pytest.mark.parametrize(
    "arguments", [("--consumer", "c_api"), ("-k", "c_api and load"), ("--check", "load")]
)
def test_a_production_whose_line_was_lost_runs_again(small, arguments):
    """A kill between the rename of an artifact and its line: the artifact is there, and nobody said
    that it was made.
    """
    made = f"beta/tf2@{VERSION}/-/produce"
    small.behave([made, {"make_and_die": 9}])
    assert small.run(*arguments).returncode == 9
    assert (small.out / "artifacts" / "beta" / f"tf2@{VERSION}" / "provenance.json").exists()
    assert outcomes(small).get(made) is None
    small.behave()
    done = small.run("--resume", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(small)[made] == "PASS"
    left_out = [item["cell"] for item in small.summary()["not_run"]]
    assert all("/-/produce" not in one for one in left_out), left_out


def test_a_second_run_on_a_folder_is_refused(small):
    """Two at once would empty each other's folder, and both end with 0 and with results missing."""
    small.behave(["*", {"wait_for": "go"}])
    ours = (
        "--cases-dir",
        small.cases,
        "--fixtures",
        small.fixtures,
        "--expectations",
        small.ledger,
        "--out",
        small.out,
        "-n",
        "1",
    )
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        *map(str, ours),
        "--",
        "-p",
        "matrix_double",
    ]
    first = subprocess.Popen(
        command,
        cwd=small.root,
        env=small.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not small.executed():
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    before = (small.out / "results.jsonl").read_bytes()
    for arguments in ((), ("--resume",)):
        second = small.run(*arguments)
        assert (second.returncode, second.stdout) == (4, "")
        assert "another run" in second.stderr and str(small.out) in second.stderr
    assert (
        small.command("matrix", "report", small.out).returncode == 4
    )  # it would be one of half a run
    assert (small.out / "results.jsonl").read_bytes() == before
    (small.root / "go").touch()
    first.communicate()
    assert first.returncode == 0
    summary = small.summary()
    assert (summary["observed"], summary["not_run"]) == (summary["planned"], [])
    assert small.run("--resume").returncode == 0  # the folder is free again


def test_questions_alone_may_be_chosen_where_many_runtimes_answer(small):
    """The first session makes what they need, and an expression that fits no production is not an
    empty selection.
    """
    two = ("--runtime", "local", "--runtime", "other=local")
    done = small.run(*two, "-k", "c_api and load")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = {one for one, outcome in outcomes(small).items() if outcome == "PASS"}
    assert {one.rsplit("/", 1)[1] for one in asked} == {"produce", "load"}
    assert small.run(*two, "-k", "no such cell").returncode == 64
