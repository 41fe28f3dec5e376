"""``savedmodel-compat matrix`` as its users run it: processes, files, exit codes.

The workers are played by ``matrix_double``.
"""

import json
import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from matrix_world import FAIL, FUNCTION, VERSION, World, cell, entry, outcomes, small_world
from referencing import Registry, Resource

import compat_matrix
from compat_matrix.engine import running

SCHEMAS = {
    path.name: json.loads(path.read_text())
    for path in (Path(compat_matrix.__path__[0]) / "schemas").glob("*.json")
}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
ARTIFACTS = [
    f"{case}/{producer}@{VERSION}"
    for case in ("alpha", "beta")
    for producer in ("reference", "tf2")
]
LEFT_OUT = {"outcome": "NOT_RUN", "message": "deselected", "expected": None}
CONSUMERS = ("tf2", "v1_session", "c_api", "reference")


def validate(data, name):
    jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(data)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def small(tmp_path):
    return small_world(tmp_path)


@pytest.mark.parametrize(
    ("cells", "processes"), [(0, 1), (running.CELLS_PER_PROCESS * 2 - 1, 1), (10**6, 2)]
)
def test_few_cells_are_run_in_one_process(monkeypatch, cells, processes):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(running, "MEMORY_PER_PROCESS", 1)
    assert running.default_processes(cells) == processes


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_whole_run(world, processes):
    world.expect(entry("old", "fixture", "c_api", "values"))
    world.behave([f"old/*/c_api@{VERSION}/values", FAIL])
    done = world.run("-n", processes)
    assert done.returncode == 0, done.stderr
    summary = world.summary()
    validate(summary, "summary.schema.json")
    validate(json.loads((world.out / "plan.json").read_text()), "plan.schema.json")
    validate(json.loads((world.out / "run.json").read_text()), "run.schema.json")
    for record in world.results().values():
        validate(record, "result.schema.json")
    assert summary["observed"] == summary["planned"] == len(world.executed()) > 70
    assert summary["cells"] == len(world.results())
    assert (summary["unexpected"], summary["not_run"], summary["partial"]) == ([], [], False)
    assert summary["by_outcome"]["LOAD_ERROR"] == 1
    assert summary["run"]["processes"] == int(processes)
    assert summary["run"]["seconds"] > 0
    lines = done.stdout.splitlines()
    assert lines[0] == "nothing unexpected"
    assert lines[-1] == "exit 0: as expected"
    for name in ("report.html", "summary.json", "results.jsonl", "junit.xml"):
        assert f"  {(world.out / name).relative_to(world.root)}" in lines
        assert (world.out / name).stat().st_size > 0
    assert f"{summary['planned']} cells to run" in done.stderr
    assert f"{summary['planned']}/{summary['planned']} cells, 0 unexpected" in done.stderr
    assert "passed" not in done.stdout  # pytest keeps quiet


def test_with_v_pytest_speaks(small):
    done = small.run("--consumer", "c_api", pytest=["-v"])
    assert done.returncode == 0
    assert f"::{cell('c_api', 'load')} PASSED" in done.stdout


@pytest.mark.parametrize(
    ("ledger", "script", "code", "words"),
    [
        ("", [["*/c_api@*/load", FAIL]], 1, "exit 1: unexpected results"),
        (entry("beta", "tf2", "c_api", "load"), [], 2, "exit 2: stale expectations"),
        (entry("gone"), [], 2, "selects no cell"),
        (entry("beta", until="2020-01-01"), [], 2, "neither a date"),
        ("[[expect]]", [], 2, "outcome is missing"),
        ("", [["*/c_api@*/load", {"raise": "bug"}]], 4, "exit 4: harness or environment error"),
        ("", [["*/c_api@*/load", {"outcome": "ENV_ERROR"}]], 4, "exit 4"),
        ("", [[f"beta/tf2@{VERSION}/c_api@*/load", {"interrupt": True}]], 130, "--resume"),
        ("", [[f"beta/tf2@{VERSION}/-/produce", FAIL]], 1, "producer failed"),
        (entry("beta", "*", "-", "produce"), [["*/-/produce", FAIL]], 0, "exit 0: as expected"),
    ],
)
def test_exit_codes(small, ledger, script, code, words):
    small.expect(ledger)
    small.behave(*script)
    done = small.run()
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--case", "nothing"], "the selection holds no cell"),
        (["--cell", "beta/tf2@1/tf2@1/load"], "no such cell"),
        (
            ["--consumer", "c_api", "--check", "reexport", "--case", "alpha"],
            "are not applicable: the consumer cannot resave",
        ),
        (["-k", "nothing_like_it"], "the selection holds no cell that could be executed"),
        (["-k", "((("], "pytest refused its arguments"),
        (["--nonsense"], "No such option"),
        (["-n", "0"], "0 is not in the range"),
        (["--cases-dir", "/does/not/exist"], "does not exist"),
    ],
)
def test_usage_errors(world, arguments, words):
    done = world.run(*arguments)
    assert (done.returncode, words in done.stderr) == (64, True), done.stderr
    assert world.executed() == []


def test_a_broken_case_or_fixture_is_the_harness(small):
    (small.cases / "beta.py").write_text("1 / 0")
    done = small.run()
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (4, True)
    small.case("beta", [FUNCTION])
    (small.fixture("new") / "io" / "io.json").write_text("{")
    done = small.run()
    assert (done.returncode, str(small.fixtures / "new") in done.stderr) == (4, True)


def test_an_empty_world_is_never_green(small):
    (small.cases / "beta.py").unlink()
    assert small.run().returncode == 64


def test_a_folder_that_is_not_ours_is_left_alone(small):
    small.out.mkdir()
    (small.out / "thesis.txt").write_text("precious")
    done = small.run()
    assert (done.returncode, "from a run" in done.stderr) == (64, True)
    assert [path.name for path in small.out.iterdir()] == ["thesis.txt"]


def test_a_second_run_in_the_same_folder_starts_anew(small):
    small.behave(["*/load", FAIL])
    assert small.run().returncode == 1
    (small.out / "notes.txt").write_text("mine")
    small.behave()
    (small.out / "evidence" / "old").mkdir(parents=True)
    assert small.run("--consumer", "tf2").returncode == 0
    assert "LOAD_ERROR" not in outcomes(small).values()
    assert not (small.out / "evidence" / "old").exists()
    assert (small.out / "notes.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--consumer", "c_api"], {(a, "c_api", "load") for a in ARTIFACTS[2:]}),
        (
            ["--check", "load", "--consumer", "tf*", "--consumer", "reference"],
            {(a, c, "load") for a in ARTIFACTS[2:] for c in CONSUMERS[::3]},
        ),
        (
            ["--producer", "tf2", "--check", "values"],
            {(ARTIFACTS[3], c, "values") for c in ("tf2", "reference")},
        ),
        (["--cell", cell("tf2", "values")], {(ARTIFACTS[3], "tf2", "values")}),
        (
            ["-k", "tf2 and not reference and not evaluator and load"],
            {(ARTIFACTS[3], c, "load") for c in ("tf2", "v1_session", "c_api")},
        ),
        (
            ["--case", "bet*", "-k", "v1_session"],
            {(a, "v1_session", "load") for a in ARTIFACTS[2:]},
        ),
    ],
)
def test_selections(small, arguments, expected):
    done = small.run(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    productions = {f"{artifact}/-/produce" for artifact, _, _ in expected}
    wanted = productions | {
        cell(consumer, check, artifact) for artifact, consumer, check in expected
    }
    assert {one for _, one in small.executed()} == wanted
    summary = small.summary()
    validate(summary, "summary.schema.json")
    assert (summary["partial"], summary["observed"]) == (True, len(wanted))
    assert {item["reason"] for item in summary["not_run"]} == {"deselected"}
    assert summary["observed"] + len(summary["not_run"]) == summary["planned"]


def test_require_does_not_accept_a_selection(small):
    assert small.run("--consumer", "c_api", "--require").returncode == 3
    assert small.run("--require").returncode == 0


def test_nothing_around_the_folder_has_a_say(small):
    (small.root / "conftest.py").write_text("raise SystemExit('conftest.py was imported')")
    (small.root / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\n")
    assert small.run().returncode == 0


def test_a_report_is_made_from_the_files_alone(small):
    small.expect(entry("beta", "tf2", "c_api", "load"), entry("gone"))
    small.behave(["*/c_api@*/load", FAIL])
    first = small.run()
    summary, html = small.summary(), (small.out / "report.html").read_bytes()
    moved = small.root / "elsewhere"
    small.out.rename(moved)
    for name in ("summary.json", "report.html"):
        (moved / name).unlink()
    small.ledger.unlink()
    again = small.command("matrix", "report", moved)
    assert again.returncode == first.returncode == 1
    assert again.stdout.replace(moved.name, small.out.name) == first.stdout
    assert small.summary(moved) == summary
    assert (moved / "report.html").read_bytes() == html


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("plan.json", lambda text: text.replace(f"tf2@{VERSION}/load", f"tf2@{VERSION}/values", 1)),
        ("results.jsonl", lambda text: text.replace('"outcome": "PASS"', '"outcome": "FINE"', 1)),
        ("results.jsonl", lambda text: "garbage\n" + text),
    ],
)
def test_damaged_files_are_not_reported_as_good(small, file, change):
    small.run("--consumer", "c_api")
    path = small.out / file
    path.write_text(change(path.read_text()))
    done = small.command("matrix", "report", small.out)
    assert (done.returncode, "Error: " in done.stderr) == (4, True), done.stdout


def line_of(text, where, **changes):
    """The line of a result, with changes."""
    return (
        json.dumps(
            {
                **next(record for record in map(json.loads, text.splitlines()) if where(record)),
                **changes,
            }
        )
        + "\n"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"outcome": "LOAD_ERROR"', '"outcome": "PASS"'),
        lambda text: (
            text
            + line_of(text, lambda r: r["outcome"] == "LOAD_ERROR", outcome="PASS", expected=True)
        ),
        lambda text: (
            text
            + line_of(
                text, lambda r: r["outcome"] == "PASS", cell=f"no/tf2@{VERSION}/tf2@{VERSION}/load"
            )
        ),
        lambda text: text.replace(
            *[
                line_of(text, lambda r: r["outcome"] == "LOAD_ERROR", **new)
                for new in ({}, LEFT_OUT)
            ]
        ),
    ],
    ids=["edited", "a pass behind a failure", "a cell of no plan", "told as deselected"],
)
@pytest.mark.parametrize("command", ["report", "expect update"])
def test_results_that_the_run_did_not_write_are_refused(small, command, change):
    small.behave([cell("c_api", "load"), FAIL])
    assert small.run("--consumer", "c_api").returncode == 1
    path = small.out / "results.jsonl"
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    more = ("--expectations", small.ledger, "--reason", "x") if command == "expect update" else ()
    done = small.command("matrix", *command.split(), small.out, *more)
    assert done.returncode == 4, done.stderr
    assert "results.jsonl, line" in done.stderr and "this result of " in done.stderr
    again = small.run("--consumer", "c_api", "--resume")
    assert again.returncode == 4 and "this result" in again.stderr


def test_results_of_another_run_of_the_same_plan_are_refused(small):
    small.run("--consumer", "c_api", out=small.root / "other")
    small.behave([cell("c_api", "load"), FAIL])
    assert small.run("--consumer", "c_api").returncode == 1
    shutil.copy(small.root / "other" / "results.jsonl", small.out)
    done = small.command("matrix", "report", small.out)
    assert (done.returncode, "this result" in done.stderr) == (4, True)


def test_results_that_no_run_sealed_are_not_enough(small):
    """As of a run that was killed, or results that were edited without their digests."""
    small.behave([cell("c_api", "load"), FAIL])
    assert small.run("--consumer", "c_api").returncode == 1
    path = small.out / "results.jsonl"
    path.write_text(path.read_text().replace('"outcome": "LOAD_ERROR"', '"outcome": "PASS"'))
    (small.out / "results.sha256").unlink()
    done = small.command("matrix", "report", small.out)
    assert done.returncode == 3 and "come to its end" in done.stdout
    assert small.summary()["ended"] is False
    assert "come to its end" in (small.out / "report.html").read_text()
    done = small.command(
        "matrix", "expect", "update", small.out, "--expectations", small.ledger, "--reason", "x"
    )
    assert done.returncode == 2 and "come to its end" in done.stderr


def test_a_failure_is_the_same_in_a_folder_of_any_name(small):
    said = set()
    for name in ("out", "My out (2)"):
        small.out = small.root / name
        small.behave(
            [cell("c_api", "load"), {**FAIL, "message": f"{small.out}/artifacts/x: no such file"}]
        )
        assert small.run("--consumer", "c_api").returncode == 1
        said.add(small.results()[cell("c_api", "load")]["message_normalised"])
    assert said == {"<path>: no such file"}


def test_results_of_another_plan_are_shown_nowhere(small):
    """Neither the exit code nor a report that a CI shows counts what another plan asked."""
    small.run(out=small.root / "other")
    small.case("beta", [FUNCTION], 'CHECKS = ("load", "values")\nTIMEOUT = 7')
    small.behave(["*", FAIL])
    assert small.run().returncode == 1
    for name in ("results.jsonl", "results.sha256"):
        shutil.copy(small.root / "other" / name, small.out)
    done = small.command("matrix", "report", small.out)
    assert done.returncode == 3 and "pass " not in done.stdout
    for case in ElementTree.parse(small.out / "junit.xml").iter("testcase"):
        assert case.find("skipped") is not None, case.get("name")


def test_a_ledger_that_is_no_toml_is_named(small):
    small.expect(head="[[expect")
    done = small.run()
    assert done.returncode == 2 and f"{small.ledger}: not TOML" in done.stderr


def test_removed_results_are_missed(small):
    small.run()
    path = small.out / "results.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    done = small.command("matrix", "report", small.out)
    assert done.returncode == 3
    assert "come to its end" in done.stdout


def test_junit_holds_every_planned_cell_also_after_resuming(small):
    failing = cell("c_api", "load")
    small.behave([failing, FAIL])
    small.run("--producer", "tf2")
    for arguments, left_out in (
        (("--resume",), set()),
        (("--producer", "tf2"), {("skipped", "deselected")}),
    ):
        small.run(*arguments)
        root = ElementTree.parse(small.out / "junit.xml").getroot()
        states = {
            case.get("name"): case[0] if len(case) else None for case in root.iter("testcase")
        }
        assert set(states) == {
            name
            for name, record in small.results().items()
            if record["outcome"] != "NOT_APPLICABLE"
        }
        assert (states[failing].tag, "expected PASS" in states[failing].text) == ("failure", True)
        others = [state for name, state in states.items() if state is not None and name != failing]
        assert {(state.tag, state.get("message")) for state in others} == left_out


def test_diff_between_two_versions(small):
    old, new = small.root / "old", small.root / "new"
    small.behave(["*/tf2@*/tf2@*/load", FAIL])
    small.run(out=old)
    small.tensorflow("2.100.0")
    small.behave(["*/tf2@*/c_api@*/load", FAIL])
    small.run("--case", "beta", "--consumer", "*2", "--consumer", "c_api", out=new)
    compare = ("gate", "compare", "--full", "--same")
    done = small.command(*compare, old, new)
    assert done.returncode == 1
    counts = dict(re.findall(r"^(\w[\w ]*): (\d+)$", done.stdout, re.MULTILINE))
    counts = {kind: int(count) for kind, count in counts.items() if count != "0"}
    assert counts == {"regressed": 1, "vanished": 8, "fixed": 1, "same": 6}
    assert "  beta/tf2/c_api/load  PASS -> no op Foo (LOAD_ERROR x.NotFoundError)" in done.stdout
    assert small.command(*compare, old, old).returncode == 0
    done = small.command(*compare, new, old, "--json")
    facts = json.loads(done.stdout)
    assert [item["pair"] for item in facts["fixed"]] == ["beta/tf2/c_api/load"]
    assert len(facts["newly_covered"]) == 8


def test_the_plan_can_be_read(world):
    done = world.matrix("run", "--dry-run")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert f"old/fixture@1.15.5/tf2@{VERSION}/load" in lines
    assert any(f"/c_api@{VERSION}/reexport  NOT_APPLICABLE: " in line for line in lines)
    assert f"{len(lines)} cells: " in done.stderr
    validate(json.loads(world.matrix("run", "--dry-run", "--json").stdout), "plan.schema.json")


def test_expect_check_needs_no_run(world):
    world.expect(entry("old"), entry("old", check="load"), entry("gone"))
    done = world.matrix("expect check")
    assert done.returncode == 2
    assert "entry 3 (gone/*/*/* -> LOAD_ERROR) selects no cell" in done.stdout
    assert (
        "entry 1 (old/*/*/* -> LOAD_ERROR)" in done.stdout and "without `wide`: 30" in done.stdout
    )
    assert done.stdout.count("more than one entry") == 5
    problems = json.loads(world.matrix("expect check", "--json").stdout)["problems"]
    assert {kind: len(facts) for kind, facts in problems.items()} == {
        "dead_entry": 1,
        "too_wide": 1,
        "overlap": 5,
        "expired": 0,
    }
    world.expect(entry("beta"))
    done = world.matrix("expect check")
    assert (done.returncode, done.stdout) == (0, "")


def test_expect_explain(world):
    world.expect(
        entry("old", consumer_version=">=2", issue="https://x/1"),
        entry("old", consumer_version="<2", reason="long ago"),
    )
    done = world.matrix("expect explain", cell("c_api", "load", "old/fixture@1.15.5"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "LOAD_ERROR is expected"
    assert "entry 1 (old/*/*/* -> LOAD_ERROR) applies: bug, known" in done.stdout
    assert "issue: https://x/1" in done.stdout
    assert "entry 2 (old/*/*/* -> LOAD_ERROR)" in done.stdout and "bug, long ago" in done.stdout
    told = json.loads(
        world.matrix("expect explain", cell("c_api", "load", "old/fixture@1.15.5"), "--json").stdout
    )
    assert told["expected"] == ["LOAD_ERROR"] and [one["applies"] for one in told["entries"]] == [
        True,
        False,
    ]
    assert "PASS is expected" in world.matrix("expect explain", cell("tf2", "load")).stdout
    done = world.matrix("expect explain", cell("c_api", "reexport", "old/fixture@1.15.5"))
    assert "NOT_APPLICABLE, decided" in done.stdout
    assert world.matrix("expect explain", "old/x@1/y@2/load").returncode == 64


def test_expect_update_makes_a_red_run_green(small):
    small.expect(entry("gone"), head="# ours\nschema = 1\n")
    small.behave(
        ["*/c_api@*/load", FAIL],
        [f"beta/reference@{VERSION}/-/produce", {**FAIL, "outcome": "REJECTED"}],
    )
    assert small.run().returncode == 1

    def update(*arguments, out=small.out):
        return small.command(
            "matrix", "expect", "update", out, "--expectations", small.ledger, *arguments
        )

    before = small.ledger.read_bytes()
    refused = update()
    assert (refused.returncode, "need a reason" in refused.stderr) == (2, True)
    assert small.ledger.read_bytes() == before
    done = update("--reason", "issue 7")
    assert done.returncode == 0, done.stderr
    assert "removed entry 1 (gone/*/*/* -> LOAD_ERROR): selects no cell" in done.stdout
    assert small.ledger.read_text().startswith("# ours\nschema = 1\n")
    assert small.run().returncode == 0
    assert small.summary()["by_outcome"]["REJECTED"] == 1
    small.run("--consumer", "c_api")
    refused = update("--reason", "x")
    assert (refused.returncode, "a partial run" in refused.stderr) == (2, True)


def test_a_run_of_other_cases_says_nothing_about_our_ledger(small):
    small.run()
    done = small.command("matrix", "expect", "update", small.out)
    assert (done.returncode, "other cases" in done.stderr) == (2, True)


def test_the_replay_command_of_a_result_selects_its_cell(small):
    small.behave(["*/tf2@*/values", FAIL])
    small.run()
    record = small.results()[cell("tf2", "values")]
    program, *arguments = shlex.split(record["replay"])
    assert program == "savedmodel-compat"
    done = small.command(*arguments, "--", "-p", "matrix_double")
    assert done.returncode == 1
    assert outcomes(small, small.root / "replay")[cell("tf2", "values")] == "LOAD_ERROR"
    assert small.summary(small.root / "replay")["observed"] == 2


def test_runtimes_are_listed_without_starting_any(world):
    done = world.command("runtimes", "list")
    assert done.returncode == 0
    assert re.match(rf"local +TensorFlow {re.escape(VERSION)} ", done.stdout)
    for name in CONSUMERS:
        assert f"  {name} " in done.stdout


@pytest.mark.tensorflow
def test_the_doctor_asks_every_consumer():
    import subprocess
    import sys

    from matrix_world import REPO

    done = subprocess.run(
        [sys.executable, "-m", "savedmodel_compat", "runtimes", "doctor", "local"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for name in CONSUMERS:
        assert re.search(rf"^  {name}: .*tensorflow \d", done.stdout, re.MULTILINE)
