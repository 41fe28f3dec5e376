"""Unexpected cells are asked once more, in a fresh process: UNSTABLE, failed twice, interrupted
between, too many of them.

The commands are processes. Their workers are a script (tests/support/matrix_double.py), or a real
consumer of this file.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import nullcontext
from urllib.parse import quote
from xml.etree import ElementTree

import jsonschema
import pytest
from matrix_world import FAIL, FUNCTION, REPO, VERSION, cell, entry, small_world
from plugin_world import ours
from referencing import Registry, Resource

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.cells.tries import note_of, was_asked
from compat_matrix.engine.second_tries import SecondTries
from savedmodel_common import interrupts

LOAD = cell("c_api", "load")
OTHER = {**FAIL, "message": "no op Bar"}
RIGHT = {}


@pytest.fixture
def small(tmp_path):
    return small_world(tmp_path)


def executions(world, of=LOAD):
    return sum(one == of for _, one in world.executed())


SCHEMAS = {
    path.name: json.loads(path.read_text())
    for path in (REPO / "compat_matrix" / "schemas").glob("*.json")
}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def of_schema(name, document):
    jsonschema.Draft202012Validator(SCHEMAS[f"{name}.schema.json"], registry=REGISTRY).validate(
        document
    )


def note(record):
    return record["details"]["second_try"]["note"]


def record_of(world, of=LOAD):
    found = world.results()[of]
    of_schema("result", found)
    of_schema("summary", world.summary())
    return found


def test_a_cell_that_passes_the_second_time_is_unstable_and_red(small):
    small.behave([LOAD, {"tries": [FAIL, RIGHT]}])
    done = small.run()
    assert done.returncode == 1 and executions(small) == 2
    assert "1 unexpected, 1 of them UNSTABLE" in done.stdout
    said = (
        "the first try: LOAD_ERROR x.NotFoundError (no op Foo); the second, in a fresh process:"
        " PASS"
    )
    assert said in done.stdout and f"unexpected UNSTABLE {LOAD}" in done.stderr
    record = record_of(small)
    assert (record["outcome"], record["expected"], record["message"]) == ("UNSTABLE", False, said)
    tries = record["details"]["second_try"]
    assert [tries[name]["outcome"] for name in ("first", "second")] == ["LOAD_ERROR", "PASS"]
    summary = small.summary()
    assert summary["second_tries"] == {"asked": 1, "unstable": 1, "not_asked": 0}
    assert [(fact["cell"], fact["outcome"]) for fact in summary["unexpected"]] == [
        (LOAD, "UNSTABLE")
    ]
    (failure,) = ElementTree.parse(small.out / "junit.xml").iter("failure")
    assert failure.get("message") == f"UNSTABLE {said}"
    page = (small.out / "report.html").read_text()
    assert "1 of them UNSTABLE" in page and "first try: LOAD_ERROR x.NotFoundError" in page
    assert "fresh process: PASS" in page
    again = small.command("matrix", "report", small.out)
    assert (again.returncode, small.summary()) == (1, summary)


@pytest.mark.parametrize(
    "second", [{**FAIL, "outcome": "CALL_ERROR"}, {**FAIL, "error_class": "x.Other"}]
)
def test_a_cell_that_fails_otherwise_the_second_time_is_unstable(small, second):
    small.behave([LOAD, {"tries": [FAIL, second]}])
    assert small.run().returncode == 1
    tries = record_of(small)["details"]["second_try"]
    assert record_of(small)["outcome"] == "UNSTABLE"
    assert tries["second"]["message"] == second["message"]


def test_a_cell_that_fails_twice_is_an_ordinary_failure_with_a_note(small):
    small.behave([LOAD, FAIL])
    done = small.run()
    assert done.returncode == 1 and executions(small) == 2
    record = record_of(small)
    assert (record["outcome"], record["message"]) == ("LOAD_ERROR", "no op Foo")
    assert note(record).startswith("failed twice")
    assert "1 unexpected\n" in done.stdout and "failed twice" in done.stdout
    assert "failed twice" in (small.out / "junit.xml").read_text()
    assert "failed twice" in (small.out / "report.html").read_text()
    assert small.summary()["second_tries"] == {"asked": 1, "unstable": 0, "not_asked": 0}


def test_another_message_of_the_same_error_is_told(small):
    small.behave([LOAD, {"tries": [FAIL, OTHER]}])
    assert small.run().returncode == 1
    record = record_of(small)
    assert (record["outcome"], record["message"]) == ("LOAD_ERROR", "no op Foo")
    assert note(record).startswith("failed twice") and note(record).endswith("no op Bar")


def test_wrong_answers_with_other_numbers_are_the_same_failure(small):
    wrong = {"outcome": "FAIL_VALUE", "message": "element [0] is 0.1, recorded 0.2"}
    small.behave(
        [LOAD, {"tries": [wrong, {**wrong, "message": "element [0] is 0.3, recorded 0.2"}]}]
    )
    assert small.run().returncode == 1
    record = record_of(small)
    assert record["outcome"] == "FAIL_VALUE" and note(record).startswith("failed twice")


def test_an_expected_failure_and_a_fault_of_the_machine_are_not_asked_again(small):
    small.expect(entry("beta", "tf2", "c_api", "load"))
    small.behave(
        [LOAD, FAIL],
        [cell("v1_session", "load"), {"outcome": "ENV_ERROR"}],
        [cell("tf2", "load"), {"raise": "ours"}],
    )
    assert small.run().returncode == 4
    assert [
        executions(small, of) for of in (LOAD, cell("v1_session", "load"), cell("tf2", "load"))
    ] == [1, 1, 1]


def test_an_unexpected_pass_is_asked_again(small):
    small.expect(entry("beta", "tf2", "c_api", "load"))
    small.behave([LOAD, {"tries": [RIGHT, FAIL]}])
    assert small.run().returncode == 1
    assert record_of(small)["outcome"] == "UNSTABLE"
    small.behave()
    assert small.run().returncode == 2  # the ledger is stale
    assert note(record_of(small)).startswith("passed twice")


def test_a_second_try_that_cannot_be_made_leaves_the_first(small):
    small.behave([LOAD, {"tries": [FAIL, {"raise": "no process"}]}])
    assert small.run().returncode == 1
    record = record_of(small)
    assert record["outcome"] == "LOAD_ERROR" and "SETUP_ERROR" in note(record)
    assert "no process" in note(record)


def test_an_artifact_that_is_made_at_the_second_try_is_asked_about(small):
    made = f"beta/tf2@{VERSION}/-/produce"
    small.behave([made, {"tries": [FAIL, RIGHT]}])
    assert small.run().returncode == 1
    assert record_of(small, made)["outcome"] == "UNSTABLE"
    assert small.results()[LOAD]["outcome"] == "PASS"


def test_a_comparison_with_an_unstable_cell_is_not_made(small):
    small.cpp(True)
    small.behave([LOAD, {"tries": [FAIL, RIGHT]}])
    assert small.run().returncode == 1
    both = small.results()[cell("c_api", "load").replace("c_api@", "c_api+cpp@")]
    assert (both["outcome"], both["message"]) == ("NOT_RUN", f"{LOAD} is UNSTABLE")


def test_a_comparison_that_disagrees_asks_nobody_again(small):
    small.cpp(True)
    small.behave([cell("c_api", "load"), FAIL])
    small.expect(entry("beta", "tf2", "c_api", "load"))
    assert small.run().returncode == 1
    both = record_of(small, cell("c_api", "load").replace("c_api@", "c_api+cpp@"))
    assert both["outcome"] == "DISAGREE" and "second_try" not in both["details"]


def test_the_first_failure_ends_a_run_with_x_after_its_second_try(small):
    small.behave([LOAD, {"tries": [FAIL, RIGHT]}])
    assert small.run(pytest=("-x",)).returncode == 1
    assert executions(small) == 2 and record_of(small)["outcome"] == "UNSTABLE"
    assert "NOT_RUN" in {record["outcome"] for record in small.results().values()}


@pytest.mark.parametrize("second", [RIGHT, FAIL, {**FAIL, "outcome": "CRASH"}])
def test_an_interrupted_second_try_is_made_by_a_resumed_run(small, second):
    """The first try is neither lost nor made again."""
    small.behave([LOAD, {"tries": [FAIL, {"interrupt": True}, second]}])
    assert small.run().returncode == 130
    assert record_of_interrupted(small)["outcome"] == "NOT_RUN" and executions(small) == 2
    assert small.run("--resume").returncode == 1
    assert executions(small) == 3
    record = record_of(small)
    assert record["outcome"] == ("LOAD_ERROR" if second is FAIL else "UNSTABLE")
    assert small.run("--resume").returncode == 1 and executions(small) == 3
    assert record_of(small) == record


def record_of_interrupted(world):
    assert not (world.out / "summary.json").exists()
    return world.results()[LOAD]


def test_an_interrupted_first_try_is_made_again(small):
    small.behave([LOAD, {"tries": [{**FAIL, "interrupt": True}, RIGHT]}])
    assert small.run().returncode == 130
    assert small.run("--resume").returncode == 0
    assert record_of(small)["outcome"] == "PASS"


@pytest.mark.parametrize(("grown", "outcome"), [(False, "PASS"), (True, "UNSTABLE")])
def test_a_first_try_counts_as_long_as_the_question_is_the_same(small, grown, outcome):
    """A case that was changed since is another question; a plan that has grown asks the old
    ones.
    """
    small.case("gamma", [FUNCTION])
    small.behave([LOAD, {"tries": [FAIL, {"interrupt": True}, RIGHT]}])
    small.run()
    if grown:
        small.case("delta", [FUNCTION])
    else:
        with (small.cases / "beta.py").open("a") as case:
            case.write("# another model\n")
    assert small.run("--resume").returncode == (outcome != "PASS")
    assert record_of(small)["outcome"] == outcome


def test_a_new_run_knows_nothing_of_a_first_try(small):
    small.behave([LOAD, {"tries": [FAIL, {"interrupt": True}, RIGHT]}])
    small.run()
    assert small.run().returncode == 0
    assert record_of(small)["outcome"] == "PASS"


def test_a_first_try_that_the_ledger_now_expects_is_the_result(small):
    small.behave([LOAD, {"tries": [FAIL, {"interrupt": True}, RIGHT]}])
    small.run()
    small.expect(entry("beta", "tf2", "c_api", "load"))
    assert small.run("--resume").returncode == 0
    assert record_of(small)["outcome"] == "LOAD_ERROR" and executions(small) == 2


def test_in_many_processes_each_cell_is_asked_again_too(small):
    small.behave([LOAD, {"tries": [FAIL, RIGHT]}], [cell("tf2", "load"), FAIL])
    assert small.run("-n", "2").returncode == 1
    assert [record_of(small, of)["outcome"] for of in (LOAD, cell("tf2", "load"))] == [
        "UNSTABLE",
        "LOAD_ERROR",
    ]


def test_a_ledger_cannot_expect_it_and_cannot_be_made_of_it(small):
    small.behave([LOAD, {"tries": [FAIL, RIGHT]}])
    small.run()
    done = small.command(
        "matrix", "expect", "update", small.out, "--expectations", small.ledger, "--reason", "x"
    )
    assert "gave two outcomes" in done.stderr and LOAD in done.stderr
    small.expect(entry("beta", outcome="UNSTABLE", error_class=None))
    done = small.run()
    assert done.returncode == 2 and "UNSTABLE cannot" in done.stderr


# The limits, with a clock of our own.

CELL = Cell("a", "tf2", "1", "c_api", "1", "load", "local", "artifacts/a")


def failed(**more):
    return Result("0" * 64, CELL.id, **{"outcome": Outcome.CRASH, "expected": False, **more})


def tries(folder, clock=lambda: 0.0, **more):
    return SecondTries(folder, nullcontext, clock=clock, **more)


def test_only_so_many_cells_are_asked_again_and_the_others_say_so(tmp_path):
    asked = tries(tmp_path, processes=2)
    notes = [note_of(asked.make(CELL, failed(), failed)) for _ in range(26)]
    assert all(note.startswith("failed twice") for note in notes[:25])
    assert notes[25].startswith("not asked again: ") and "50 cells" in notes[25]


def test_only_so_much_time_is_spent(tmp_path):
    now = [0.0]
    asked = tries(tmp_path, lambda: now[0])

    def slow():
        now[0] += 301
        return failed()

    first, second = asked.make(CELL, failed(), slow), asked.make(CELL, failed(), slow)
    assert was_asked(first) and not was_asked(second)
    assert note_of(second).startswith("not asked again: ") and "300 s" in note_of(second)


def test_the_evidence_of_the_first_try_outlives_an_interrupted_second(tmp_path):
    seen = failed(evidence={"stderr": f"evidence/{CELL.id}/stderr.txt"})
    log = tmp_path / "evidence" / CELL.id / "stderr.txt"

    def says(text):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)

    def interrupted():
        says("second")
        raise KeyboardInterrupt

    says("first")
    with pytest.raises(KeyboardInterrupt):
        tries(tmp_path).make(CELL, seen, interrupted)
    first = tries(tmp_path).interrupted(CELL, "1" * 64)
    made = tries(tmp_path).make(CELL, first, lambda: failed(expected=True, outcome=Outcome.PASS))
    assert (made.plan_id, made.outcome) == ("0" * 64, Outcome.UNSTABLE)
    assert (tmp_path / made.evidence["first_stderr"]).read_text() == "first"


def test_a_signal_that_a_library_swallowed_is_not_taken_for_a_failure(tmp_path, monkeypatch):
    def asked_to_end():
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupts, "check", asked_to_end)
    with pytest.raises(KeyboardInterrupt):
        tries(tmp_path).make(CELL, failed(), failed)
    assert tries(tmp_path).interrupted(CELL, "0" * 64) is None


def test_a_run_in_which_everything_fails_says_how_many_were_not_asked_again(tmp_path):
    world = small_world(tmp_path)
    for name in "bcdefghijklmnopqrstuvwxyz":
        world.case(f"{name}eta", [FUNCTION], 'CHECKS = ("load",)')
    world.behave(["*/load", FAIL])
    done = world.run()
    counts = world.summary()["second_tries"]
    assert (
        counts["asked"] == 50 and counts["not_asked"] == len(world.summary()["unexpected"]) - 50 > 0
    )
    assert f"{counts['not_asked']} not asked again" in done.stdout


# A real consumer.

FLAKY = """
import pathlib, sys

import numpy_consumer
from compat_matrix.workers import protocol

MARKER = pathlib.Path(__file__).with_name("has_failed")


class Flaky(numpy_consumer.NumpyWorker):
    name = "flaky"

    def call_signature(self, model, key, inputs):
        print("asked", "again" if MARKER.exists() else "first", file=sys.stderr)
        if ALWAYS or not MARKER.exists() or self.__dict__.get("has_failed"):
            MARKER.touch()
            self.has_failed = True  # this process never answers any more
            raise RuntimeError("a race was lost")
        return super().call_signature(model, key, inputs)


protocol.serve(Flaky)
"""


@pytest.fixture
def flaky(tmp_path):
    """Run the matrix with a consumer whose first process fails each call; ``always``: so do all."""
    shutil.copyfile(
        REPO / "savedmodel_plugin_kit" / "samples" / "numpy_consumer.py",
        tmp_path / "numpy_consumer.py",
    )
    shutil.copytree(REPO / "fixtures_v1" / "dtypes_io", tmp_path / "fixtures" / "dtypes_io")
    (tmp_path / "cases").mkdir()
    (tmp_path / "ledger.toml").write_text("schema = 1\n")

    def run(always=False):
        (tmp_path / "flaky.py").write_text(f"ALWAYS = {always}\n{FLAKY}")
        place = ["--cases-dir", "cases", "--fixtures", "fixtures", "--expectations", "ledger.toml"]
        words = ["matrix", "run", "--out", "out", "-n", "1", *place, "--check", "values"]
        return ours([*words, "--consumer", f"flaky={sys.executable} flaky.py"], tmp_path)

    return run


def the_record(folder):
    lines = map(json.loads, (folder / "out" / "results.jsonl").read_text().splitlines())
    (record,) = [line for line in lines if line["outcome"] not in ("NOT_RUN", "NOT_APPLICABLE")]
    return record


def test_the_second_try_has_a_process_of_its_own_and_both_logs_are_kept(flaky, tmp_path):
    done = flaky()
    assert done.returncode == 1, done.stdout + done.stderr
    record = the_record(tmp_path)
    kept = record["details"]["second_try"]
    assert record["outcome"] == "UNSTABLE" and kept["second"]["outcome"] == "PASS", record
    first, second = (
        (tmp_path / "out" / record["evidence"][f"{which}_stderr"]).read_text()
        for which in ("first", "second")
    )
    assert "asked first" in first and "asked again" not in first
    assert "asked again" in second and "asked first" not in second
    assert kept["first"]["details"]["failed"] and kept["second"]["details"]["answers"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "asked first" in page and "asked again" in page and "a race was lost" in page
    for path in record["evidence"].values():
        assert quote(path) in page and (tmp_path / "out" / path).is_file()
    assert record["evidence"]["first_stderr"] in done.stdout


def test_a_consumer_that_always_fails_is_an_ordinary_failure(flaky, tmp_path):
    done = flaky(always=True)
    record = the_record(tmp_path)
    assert (done.returncode, record["outcome"]) == (1, "CALL_ERROR"), done.stdout + done.stderr
    assert {"stderr", "second_stderr"} <= set(record["evidence"])
    assert note(record).startswith("failed twice")
