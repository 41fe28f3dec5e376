"""The ledger of a version grid: written by X, read by Y.

Through the command line, on results as a run leaves them.
"""

import json
import random
import shutil

import pytest
import tomlkit
from click.testing import CliRunner
from matrix_world import entry
from packaging.version import Version

from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Observation, Result, read_results, write_results
from compat_matrix.verdict.ranges import Range
from savedmodel_compat.cli import main

VERSIONS = ("1.15.5", "2.0.4", "2.4.4", "2.8.4", "2.10.1", "2.12.1", "2.15.1", "2.21.0")
CASES = ("alpha", "beta", "gamma", "literals")
CLASSES = {
    "tf2": "builtins.FileNotFoundError",
    "v1_session": "errors.NotFoundError",
    "c_api": "TF_NOT_FOUND",
}


def since(version, bound):
    return Version(version) >= Version(bound)


def happened(case, producer, wrote, consumer, read):
    """What a cell of our world comes to: (outcome, class, message, details)."""
    if producer == "tf2" and since(wrote, "2.15") and not since(read, "2.12") and consumer != "tf2":
        message = (
            "Converting: NodeDef mentions attr 'debug_name' not in Op<name=VarHandleOp;"
            f" signature=x>; node {case}"
        )
        skew = {"kind": "unknown_attr", "cause": "unknown attr 'debug_name': since 2.12"}
        return "LOAD_ERROR", "ValueError", message, {"skew": skew}
    if producer == "tf2" and since(wrote, "2.10") and not since(read, "2.10"):
        return (
            "LOAD_ERROR",
            CLASSES[consumer],
            f"Op type not registered 'DisableCopyOnRead' in binary running on {case}",
            {},
        )
    if case == "literals" and consumer == "c_api" and read == "2.8.4":
        return "FAIL_VALUE", None, f"element [0] is {wrote}", {}
    return "PASS", None, "", {}


def world(out, behaviour=happened, versions=VERSIONS, cases=CASES):
    """A finished run over many runtimes in ``out``."""
    cells, results = [], []
    artifacts = [(case, "tf2", v) for case in cases for v in versions if since(v, "2.0")]
    artifacts += [(case, "reference", v) for case in cases for v in versions if since(v, "2.12")]
    artifacts += [("old", "fixture", "1.15.5")]
    cells += [
        Cell(*artifact, "-", "", "produce", artifact[2], "x", artifact[2])
        for artifact in artifacts
        if artifact[1] != "fixture"
    ]
    for read in versions:
        cells += [
            Cell(*artifact, consumer, read, "values", read, "x", artifact[2])
            for artifact in artifacts
            for consumer in CLASSES
        ]
    plan = Plan(tuple(cells))
    for cell in plan:
        seen = ("PASS", None, "", {})
        if not cell.is_production:
            seen = behaviour(
                cell.case,
                cell.producer,
                cell.producer_version,
                cell.consumer,
                cell.consumer_version,
            )
        results.append(Result.observed(plan.plan_id, cell.id, Observation(*seen)))
    out.mkdir(exist_ok=True)
    plan.write(out / "plan.json")
    write_results(out / "results.jsonl", results)
    return plan


def command(*arguments):
    done = CliRunner().invoke(main, ["matrix", *map(str, arguments)])
    return done.exit_code, done.output


class Folder:
    """A run and a ledger; ``update`` and ``report`` as a user runs them."""

    def __init__(self, root):
        self.out, self.ledger = root / "out", root / "ledger.toml"
        self.ledger.write_text("# Ours.\nschema = 1\n")

    def update(self, reason="because"):
        where = (self.out, "--expectations", self.ledger)
        return command("expect", "update", *where, "--reason", reason)

    def report(self):
        shutil.copy(self.ledger, self.out / "expectations.toml")
        code, _ = command("report", self.out)
        return code, json.loads((self.out / "summary.json").read_text())

    def tables(self):
        return tomlkit.parse(self.ledger.read_text()).unwrap().get("expect", [])


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_an_entry_for_each_consumer_and_error_covers_no_pass(folder):
    plan = world(folder.out)
    code, output = folder.update()
    assert code == 0, output
    code, summary = folder.report()
    assert (code, summary["planned"], summary["observed"]) == (0, len(plan.cells), len(plan.cells))
    assert all(isinstance(table["consumer"], str) for table in folder.tables())
    assert {(table["kind"], table["reason"]) for table in folder.tables()} == {("bug", "because")}


def test_a_failure_of_every_version_has_none_in_its_entry(folder):
    def behaviour(case, producer, wrote, consumer, read):
        if case in ("alpha", "gamma") and consumer == "c_api":
            return "LOAD_ERROR", "E", "it never loads", {}
        return "PASS", None, "", {}

    world(folder.out, behaviour)
    folder.update()
    (table,) = folder.tables()
    assert (table["case"], table["producer"]) == (["alpha", "gamma"], ["tf2", "reference"])
    assert not {"producer_version", "consumer_version"} & set(table)


def test_a_failure_of_one_reader_is_pinned_to_its_version(folder):
    world(folder.out)
    folder.update()
    (table,) = [
        table
        for table in folder.tables()
        if (table["outcome"], table["producer"]) == ("FAIL_VALUE", "reference")
    ]
    assert (table["case"], table["consumer_version"]) == ("literals", "==2.8.4")
    assert "producer_version" not in table


def test_a_failure_between_two_versions_is_pinned_to_both(folder):
    world(folder.out)
    folder.update()
    found = {
        (table["producer_version"], table["consumer_version"])
        for table in folder.tables()
        if table["consumer"] == "tf2"
    }
    assert ("==2.10.1", "==2.8.4") in found
    assert all(
        since(writer[2:], "2.10") and not since(reader[2:], "2.10") for writer, reader in found
    )


def test_the_same_results_give_the_same_bytes_in_any_order(folder):
    world(folder.out)
    before = folder.ledger.read_text()
    folder.update()
    first = folder.ledger.read_text()
    assert folder.update()[0] == 0
    assert folder.ledger.read_text() == first  # nothing is contradicted, nothing is touched
    lines = (folder.out / "results.jsonl").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (folder.out / "results.jsonl").write_text("".join(lines))
    folder.ledger.write_text(before)
    folder.update()
    assert folder.ledger.read_text() == first


def test_every_change_of_a_cell_is_reported(folder):
    """A known failure hides no other: a new error, a new pass and a new failure of any cell are
    unexpected.
    """
    world(folder.out)
    folder.update()
    results = read_results(folder.out / "results.jsonl")
    chance = random.Random(7)
    failed = [result for result in results if result.outcome != "PASS"]
    passed = [result for result in results if result.outcome == "PASS"]
    changes = {
        "unexpected_pass": [(result, ("PASS", None, "")) for result in chance.sample(failed, 8)],
        "wrong_error": [
            *(
                (result, ("CALL_ERROR", result.error_class, result.message))
                for result in chance.sample(failed, 4)
            ),
            *(
                (result, ("LOAD_ERROR", "E", "Op type not registered 'DisableCopyOnReadX'"))
                for result in chance.sample(failed, 4)
            ),
        ],
        "unexpected_fail": [
            (result, ("LOAD_ERROR", "E", "Op type not registered 'Y'"))
            for result in chance.sample(passed, 8)
        ],
    }
    plan_id = results[0].plan_id
    asked = [(kind, *case) for kind, cases in changes.items() for case in cases]
    assert len(asked) == 24
    for kind, old, seen in asked:
        changed = [
            Result.observed(plan_id, r.cell, Observation(*seen)) if r is old else r for r in results
        ]
        write_results(folder.out / "results.jsonl", changed)
        code, summary = folder.report()
        assert [(fact["kind"], fact["cell"]) for fact in summary["unexpected"]] == [
            (kind, old.cell)
        ]
        assert code == (2 if kind == "unexpected_pass" else 1)


def test_what_has_no_reason_is_listed_and_nothing_is_written(folder):
    world(folder.out)
    before = folder.ledger.read_text()
    code, output = folder.update(reason="")
    assert code == 2
    assert folder.ledger.read_text() == before
    told = [line for line in output.splitlines() if " x " in line]
    numbers = [int(line.split()[0]) for line in told]
    failed = [
        result
        for result in read_results(folder.out / "results.jsonl")
        if result.outcome.gate_failure
    ]
    assert sum(numbers) == len(failed)
    assert numbers == sorted(numbers, reverse=True)


def test_an_entry_true_of_some_versions_is_replaced_with_its_reason_and_comment(folder):
    world(folder.out)
    known = entry(
        list(CASES),
        "tf2",
        "tf2",
        "values",
        error_class=None,
        message="DisableCopyOnRead",
        reason="by hand",
    )
    folder.ledger.write_text(f"schema = 1\n\n# about it\n{known}")
    code, output = folder.update()
    assert (code, "no longer the" in output) == (0, True)
    assert "# about it\n[[expect]]" in folder.ledger.read_text()
    mine = [table for table in folder.tables() if table["consumer"] == "tf2"]
    assert {(table["reason"], table["message"]) for table in mine} == {
        ("by hand", "DisableCopyOnRead")
    }
    assert folder.report()[0] == 0


def test_a_run_of_some_cases_takes_nothing_back_that_a_person_wrote(folder):
    plan = world(folder.out)
    Plan(plan.cells, narrowed=True).write(folder.out / "plan.json")
    folder.ledger.write_text("schema = 1\n\n" + entry(["alpha", "elsewhere"], "reference", "tf2"))
    code, output = folder.update()
    assert (code, "left out cases" in output) == (2, True)


def test_a_range_of_an_entry_is_never_widened(folder):
    """The reader 2.0.4 is outside of the range: it gets an entry of its own, with the new
    reason.
    """
    world(folder.out, happened, ("2.0.4", "2.4.4", "2.10.1"))
    known = entry(
        "alpha",
        "tf2",
        "tf2",
        "values",
        error_class=None,
        message="DisableCopyOnRead",
        consumer_version=">=2.4,<3",
    )
    folder.ledger.write_text("schema = 1\n\n" + known)
    folder.update()
    found = {
        (table["consumer_version"], table["reason"])
        for table in folder.tables()
        if "alpha" in table["case"] and table["consumer"] == "tf2"
    }
    assert found == {("==2.4.4", "known"), ("==2.0.4", "because")}


def test_one_ledger_serves_one_release_and_the_grid(folder):
    world(folder.out)
    folder.update()
    later = [version for version in VERSIONS if since(version, "2.12")]
    assert later
    for version in later:
        world(folder.out, versions=(version,), cases=CASES)
        code, summary = folder.report()
        assert (code, summary["ledger"]["dead_entry"]) == (0, []), version


def test_an_entry_whose_case_is_gone_is_dead_where_its_versions_are(folder):
    world(folder.out)
    folder.update()
    folder.ledger.write_text(
        folder.ledger.read_text() + entry("gone", "tf2", "tf2", "values", consumer_version="<2.4")
    )
    code, summary = folder.report()
    assert (code, len(summary["ledger"]["dead_entry"])) == (2, 1)
    world(folder.out, versions=("2.12.1", "2.21.0"))
    assert folder.report()[0] == 0


@pytest.mark.parametrize(
    ("case", "check", "dead"),
    [("gone", "values", 0), ("alpha", "reexport", 0), ("old", "values", 1)],
)
def test_a_plan_of_some_cases_says_nothing_of_others(folder, case, check, dead):
    plan = world(folder.out)
    Plan(plan.cells, narrowed=True).write(folder.out / "plan.json")
    folder.update()
    folder.ledger.write_text(folder.ledger.read_text() + entry(case, "tf2", "tf2", check))
    code, summary = folder.report()
    assert (code, len(summary["ledger"]["dead_entry"])) == (2 if dead else 0, dead)
    assert folder.update()[0] == 0
    assert any(table["case"] == case for table in folder.tables()) is not bool(dead)


def test_more_runtimes_make_no_entry_too_wide(folder):
    world(
        folder.out,
        behaviour=lambda case, *rest: (
            ("LOAD_ERROR", "E", "never works") if case == "alpha" else ("PASS", None, "")
        ),
    )
    folder.ledger.write_text("schema = 1\n" + entry("alpha", error_class="E"))
    assert folder.report()[0] == 0


def test_a_labelled_runtime_is_no_version_to_make_entries_of(folder):
    world(folder.out, versions=("2.21.0", "2.21.0+candidate"))
    code, output = folder.update()
    assert code == 2
    assert "labelled runtime" in output


def test_a_candidate_is_judged_as_its_release():
    assert [
        version in Range("<2.10") for version in ("2.9.3", "2.10.0rc0", "2.10.0", "absent")
    ] == [True, False, False, False]
    assert [
        version in Range(">=2.10") for version in ("2.9.3", "2.10.0rc0", "2.10.0+candidate")
    ] == [False, True, True]
