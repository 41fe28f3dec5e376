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
from compat_matrix.verdict.cover import Grid, Marks, Rectangle, cover
from compat_matrix.verdict.ranges import Axis, Range
from savedmodel_compat.cli import main

VERSIONS = ("1.15.5", "2.0.4", "2.4.4", "2.8.4", "2.10.1", "2.12.1", "2.15.1", "2.21.0")
CASES = ("alpha", "beta", "gamma", "literals")
CLASSES = {
    "tf2": "builtins.FileNotFoundError",
    "v1_session": "errors.NotFoundError",
    "c_api": "TF_NOT_FOUND",
}
RULES = r"""
schema = 1
[[rule]]
name = "unknown-op"
message = "Op type not registered '(?P<op>[^']+)'"
kind = "by_design"
reason = "the op {op} is younger"
[[rule]]
name = "unknown-attr"
skew = "unknown_attr"
message = "NodeDef mentions attr '(?P<attr>\\w+)' not in Op<name=(?P<op>\\w+);"
kind = "by_design"
reason = "COMPAT-02: {cause}"
[[rule]]
name = "one-release"
outcome = "FAIL_VALUE"
case = "literals"
kind = "bug"
reason = "the release rounds"
issue = "https://example.org/1"
"""


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
    """A run, a ledger and rules; ``update`` and ``report`` as a user runs them."""

    def __init__(self, root):
        self.out, self.ledger, self.rules = root / "out", root / "ledger.toml", root / "rules.toml"
        self.ledger.write_text("# Ours.\nschema = 1\n")
        self.rules.write_text(RULES)

    def update(self, *arguments):
        return command(
            "expect",
            "update",
            self.out,
            "--expectations",
            self.ledger,
            "--reasons",
            self.rules,
            *arguments,
        )

    def report(self):
        shutil.copy(self.ledger, self.out / "expectations.toml")
        code, _ = command("report", self.out)
        return code, json.loads((self.out / "summary.json").read_text())

    def tables(self):
        return tomlkit.parse(self.ledger.read_text()).unwrap().get("expect", [])


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_thousands_of_cells_become_few_entries_that_cover_no_pass(folder):
    plan = world(folder.out)
    code, output = folder.update()
    assert code == 0, output
    code, summary = folder.report()
    assert (code, summary["planned"], summary["observed"]) == (0, len(plan.cells), len(plan.cells))
    found = [
        tuple(
            table.get(name)
            for name in (
                "rule",
                "case",
                "producer",
                "producer_version",
                "consumer",
                "consumer_version",
            )
        )
        for table in folder.tables()
    ]
    everybody, sessions = ["alpha", "beta", "gamma", "literals"], ["c_api", "v1_session"]
    assert sorted(found, key=str) == [
        ("one-release", "literals", "reference", None, "c_api", ">=2.8,<2.9"),
        ("one-release", "literals", "tf2", "<2.9", "c_api", ">=2.8,<2.9"),
        ("unknown-attr", everybody, "tf2", ">=2.15", sessions, "<2.11"),
        ("unknown-op", everybody, "tf2", ">=2.10,<2.13", ["c_api", "tf2", "v1_session"], "<2.9"),
        ("unknown-op", everybody, "tf2", ">=2.15", "tf2", "<2.9"),
    ]


def test_an_entry_pins_the_op_and_not_what_varies(folder):
    world(folder.out)
    folder.update()
    by_rule = {table["rule"]: table for table in folder.tables()}
    assert by_rule["unknown-op"]["message"] == "Op type not registered 'DisableCopyOnRead'"
    assert by_rule["unknown-op"]["reason"] == "the op DisableCopyOnRead is younger"
    assert "error_class" not in by_rule["unknown-op"]
    assert (
        by_rule["unknown-attr"]["message"]
        == "NodeDef mentions attr 'debug_name' not in Op<name=VarHandleOp;"
    )
    assert by_rule["unknown-attr"]["reason"] == "COMPAT-02: unknown attr 'debug_name': since 2.12"
    assert by_rule["one-release"]["issue"] == "https://example.org/1"


def test_the_same_results_give_the_same_bytes_in_any_order(folder):
    world(folder.out)
    folder.update()
    first = folder.ledger.read_text()
    assert folder.update()[0] == 0
    assert folder.ledger.read_text() == first  # nothing is contradicted, nothing is touched
    assert folder.update("--remake")[0] == 0
    assert folder.ledger.read_text() == first
    lines = (folder.out / "results.jsonl").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (folder.out / "results.jsonl").write_text("".join(lines))
    folder.update("--remake")
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
    folder.rules.write_text("schema = 1\n")
    before = folder.ledger.read_text()
    code, output = folder.update()
    assert code == 2
    assert folder.ledger.read_text() == before
    told = [line for line in output.splitlines() if " x " in line]
    assert len(told) == 5
    assert told[0].startswith(
        "80 x LOAD_ERROR ValueError (c_api, v1_session): Converting: NodeDef mentions attr"
    )
    assert folder.update("--reason", "one for all")[0] == 0
    assert folder.report()[0] == 0


def test_an_entry_true_of_some_versions_is_narrowed_in_place(folder):
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
    assert folder.update()[0] == 0
    above = known.partition("producer")[0]
    assert (
        f'# about it\n{above}producer = "tf2"\nproducer_version = ">=2.10"\n'
        in folder.ledger.read_text()
    )
    mine = [table for table in folder.tables() if table["consumer"] == "tf2"]
    assert [
        (table["producer_version"], table["consumer_version"], table["message"]) for table in mine
    ] == [(">=2.10", "<2.9", "DisableCopyOnRead")]
    assert folder.report()[0] == 0


def test_a_part_of_an_entry_still_speaks_of_what_other_plans_ask(folder):
    """The grid asks for answers alone; an entry about all checks stays one, also where two ranges
    take its place.
    """
    plan = world(folder.out)
    Plan(plan.cells, narrowed=True).write(folder.out / "plan.json")
    known = entry(
        "alpha",
        "tf2",
        ["v1_session", "other"],
        message="DisableCopyOnRead|debug_name",
        error_class="ValueError",
    )
    more = entry(
        "beta",
        "tf2",
        "c_api",
        message="DisableCopyOnRead",
        error_class=None,
        producer_version=">=2.10,<2.13",
    )
    folder.ledger.write_text("schema = 1\n\n" + known + "\n" + more)
    assert folder.update()[0] == 0
    mine = [
        table for table in folder.tables() if table["reason"] == "known" and "rule" not in table
    ]
    assert {
        (json.dumps(table["consumer"]), table["check"])
        for table in mine
        if table["case"] == "alpha"
    } >= {('["v1_session", "other"]', "*")}
    assert ("<2.9", "*") in [
        (table["consumer_version"], table["check"]) for table in mine if table["case"] == "beta"
    ]


def test_a_run_of_some_cases_takes_nothing_back_that_a_person_wrote(folder):
    plan = world(folder.out)
    Plan(plan.cells, narrowed=True).write(folder.out / "plan.json")
    folder.ledger.write_text("schema = 1\n\n" + entry(["alpha", "elsewhere"], "reference", "tf2"))
    code, output = folder.update()
    assert (code, "left out cases or checks" in output) == (2, True)


def test_a_range_is_only_made_narrower(folder):
    world(folder.out)
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
    mine = [
        table for table in folder.tables() if (table["case"], table["consumer"]) == ("alpha", "tf2")
    ]
    # What lies outside of the range is another entry, with the same reason.
    assert [(table["consumer_version"], table["reason"]) for table in mine] == [
        (">=2.4,<2.9", "known"),
        ("<2.1", "known"),
    ]


def test_a_new_consumer_takes_the_reason_of_the_same_failure(folder):
    world(folder.out)
    known = entry(
        "alpha",
        "tf2",
        "tf2",
        "values",
        error_class=None,
        message="DisableCopyOnRead",
        kind="environment",
        wide="w",
    )
    folder.ledger.write_text("schema = 1\n\n" + known)
    folder.update()
    found = {
        (table["kind"], json.dumps(table["consumer"]))
        for table in folder.tables()
        if "alpha" in table["case"]
    }
    assert ("environment", '["c_api", "v1_session"]') in found
    assert ("by_design", '["c_api", "v1_session"]') in found  # the attr is another failure


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


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("name = 'x'\nkind = 'bug'\nreason = 'r'", "would fit every failure"),
        ("name = 'x'\nkind = 'flaky'\nreason = 'r'\nmessage = 'm'", "kind is 'flaky'"),
        ("name = 'x'\nkind = 'bug'\nmessage = 'm'", "reason is missing"),
        ("name = 'x'\nkind = 'bug'\nreason = 'r'\nmessage = '('", "not a regular expression"),
        (
            "name = 'x'\nkind = 'bug'\nreason = 'r'\nmessage = 'm'\nuntil = 'never'",
            "unknown field 'until'",
        ),
    ],
)
def test_rules_that_cannot_be_used_are_refused(folder, rule, problem):
    world(folder.out)
    folder.rules.write_text(f"schema = 1\n[[rule]]\n{rule}\n")
    code, output = folder.update()
    assert code == 2
    assert problem in output


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (0, 7, None),
        (0, 0, "<2"),  # 1.15 is the last of its line
        (1, 7, ">=2.0"),
        (2, 3, ">=2.4,<2.9"),  # nothing is said of 2.9, which nobody ran
        (4, 4, ">=2.10,<2.11"),
    ],
)
def test_ranges_end_at_minor_versions(first, last, text):
    assert Axis(VERSIONS).range(first, last) == text


def test_two_releases_of_one_minor_version_are_told_apart():
    axis = Axis(["2.8.0", "2.8.4", "2.9.1"])
    assert (axis.range(0, 0), axis.range(1, 1), axis.range(2, 2)) == (
        "<2.8.4",
        ">=2.8.4,<2.9",
        ">=2.9",
    )


def test_a_candidate_is_judged_as_its_release():
    assert [
        version in Range("<2.10") for version in ("2.9.3", "2.10.0rc0", "2.10.0", "absent")
    ] == [True, False, False, False]
    assert [
        version in Range(">=2.10") for version in ("2.9.3", "2.10.0rc0", "2.10.0+candidate")
    ] == [False, True, True]


@pytest.mark.parametrize("seed", range(20))
def test_a_cover_holds_all_that_fails_and_nothing_else(seed):
    chance, grid = random.Random(seed), Grid(6, 7)
    marks, must, forbidden = {}, {}, {}
    for question in "abcde":
        kinds = [chance.choice("mmfx") for _ in range(42)]
        must[question] = sum(1 << i for i, kind in enumerate(kinds) if kind == "m")
        forbidden[question] = sum(1 << i for i, kind in enumerate(kinds) if kind == "f")
        marks[question] = Marks(must[question], forbidden[question])
    covered = dict.fromkeys(marks, 0)
    for block in cover(grid, marks):
        for question in block.questions:
            bits = grid.bits(block.rectangle)
            assert not bits & forbidden[question]
            assert not bits & covered[question]  # an overlap would be two entries for one cell
            covered[question] |= bits
    assert all(must[question] & ~covered[question] == 0 for question in marks)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_block_of_a_cover_holds_as_much_as_one_question_can(seed):
    """Greedily few: what else a block takes along, it is no worse than the best one for any single
    question.
    """
    chance, grid = random.Random(seed), Grid(4, 5)
    kinds = {question: [chance.choice("mmmf") for _ in range(20)] for question in "ab"}
    must, forbidden = (
        {
            question: sum(1 << i for i, kind in enumerate(kinds[question]) if kind == wanted)
            for question in kinds
        }
        for wanted in "mf"
    )
    first = cover(
        grid, {question: Marks(must[question], forbidden[question]) for question in kinds}
    )[0]
    sides = [(a, b) for a in range(5) for b in range(a, 5)]
    every = [
        grid.bits(Rectangle(top, bottom, left, right))
        for top, bottom in sides
        if bottom < 4
        for left, right in sides
    ]
    most = max(
        bin(must[q] & bits).count("1") for q in kinds for bits in every if not bits & forbidden[q]
    )
    assert (
        sum(bin(must[q] & grid.bits(first.rectangle)).count("1") for q in first.questions) >= most
    )
