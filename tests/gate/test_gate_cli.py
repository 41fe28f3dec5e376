"""``savedmodel-compat gate`` as its users run it: runtimes and folders, exit codes, resuming.

Workers are played by a double.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from gate_folders import NEW, OLD, cell, run
from matrix_world import VERSION, World

from compat_matrix.cells.results import DESELECTED, write_results
from compat_matrix.cells.run_file import RunFile
from compat_matrix.checks import CHECKS, READING
from savedmodel_compat.cli import main

FAIL = {"outcome": "LOAD_ERROR", "error_class": "x.NotFoundError", "message": "no op Foo"}
CANDIDATE = f"{VERSION}+candidate"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def gate(world, *arguments, same=True, **options):
    """The local TensorFlow against itself, in this world: the double decides what is different."""
    here = (
        "--cases-dir",
        world.cases,
        "--fixtures",
        world.fixtures,
        "--expectations",
        world.ledger,
        "--out",
        world.out,
        "-n",
        "1",
    )
    names = ("--baseline", "local", "--candidate", "local", *["--same"][: int(same)])
    return world.command(
        "gate", "run", *names, *here, *arguments, "--", "-p", "matrix_double", **options
    )


def _character(found):
    """The character that a page writes as a number."""
    return chr(int(found[1]))


def verdict(world):
    return json.loads((world.out / "gate.json").read_text())


def test_both_write_and_both_read(world):
    done = gate(world)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"gate: {VERSION} (local) -> {CANDIDATE} (local)" in done.stdout
    found = verdict(world)
    assert (found["facts"], found["candidate"]) == (
        [],
        {"label": CANDIDATE, "spec": "local", "run": str(world.out / "run")},
    )
    assert all(found["counts"][role]["same"] for role in ("reads", "writes", "both"))
    cells = world.results(world.out / "run")
    crossed = {tuple(name.split("/")[1:3]) for name in cells}
    for written in (VERSION, CANDIDATE):
        assert {(f"tf2@{written}", f"tf2@{read}") for read in (VERSION, CANDIDATE)} <= crossed
    assert {name.rsplit("/", 1)[1] for name in cells} == {"produce", *READING}
    assert not {"relocate", "reexport"} & set(READING) and {"objects", "checkpoint"} < set(READING)
    assert found["not_asked"] == {
        "check": ["relocate", "reexport"],
        "consumer": ["cpp"],
    }  # this world has no C++ loader
    line = "not asked: checks relocate, reexport; consumers cpp"
    for name in ("gate.md", "gate.html"):
        assert line in re.sub("&#(\\d+);", _character, (world.out / name).read_text())
    assert f"pairs alike; {line}" in done.stdout
    assert {path.name for path in world.out.iterdir()} == {
        "gate.html",
        "gate.json",
        "gate.md",
        "junit.xml",
        "run",
    }


def test_what_only_the_candidate_gets_wrong_blocks(world):
    world.behave([f"old/*/c_api@{CANDIDATE}/load", FAIL])
    done = gate(world)
    assert done.returncode == 1
    assert "BLOCKED: 1 regressed" in done.stdout
    assert "no op Foo (LOAD_ERROR x.NotFoundError)" in done.stdout
    replay = verdict(world)["facts"][0]["candidate"]["replay"]
    assert "--runtime candidate=local" in replay and f"replay: {replay}" in done.stdout
    blocking = (
        (world.out / "gate.html").read_text().partition('<h2 id="blocking">')[2].partition("<h2")[0]
    )
    assert "Replay: <code>savedmodel-compat matrix run" in blocking


def test_a_failure_of_both_does_not_block_and_a_failure_of_the_harness_is_none_of_the_candidates(
    world,
):
    world.behave(["old/*/c_api@*/load", FAIL])
    assert gate(world).returncode == 0
    world.behave([f"old/*/c_api@{CANDIDATE}/load", {"raise": "a defect"}])
    assert gate(world).returncode == 4


def test_an_unstable_side_blocks_and_is_compared_with_nothing(world):
    cell_id = f"old/fixture@1.15.5/c_api@{CANDIDATE}/load"
    world.behave([cell_id, {"tries": [FAIL, {}]}])
    done = gate(world, "--accept-known")
    assert done.returncode == 1 and "BLOCKED: 1 unstable, of " in done.stdout
    (fact,) = verdict(world)["facts"]
    assert (fact["kind"], fact["candidate"]["outcome"], fact["blocks"]) == (
        "unstable",
        "UNSTABLE",
        True,
    )
    assert "fresh process: PASS (UNSTABLE)" in fact["cause"]
    compared = world.command("gate", "compare", VERSION, CANDIDATE, "--run", world.out / "run")
    assert compared.returncode == 1


def test_more_processes_than_runtimes_share_the_artifacts(world):
    done = gate(world, "-n", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    processes = {}
    for process, cell_id in world.executed():
        if not cell_id.endswith("/produce"):
            reader = cell_id.split("/")[2].partition("@")[2]
            processes.setdefault((reader, cell_id.rsplit("/", 2)[0]), set()).add(process)
    assert all(len(one) == 1 for one in processes.values())  # a model is loaded once
    assert len(set().union(*processes.values())) > 2


def test_a_selection_narrows_both_sides(world):
    done = gate(world, "--case", "old", "--consumer", "tf2", "--check", "load")
    assert done.returncode == 0
    assert verdict(world)["compared"] == 1
    assert len(world.executed()) == 2
    done = gate(
        world, "--case", "alpha", "--producer", "tf2", "--consumer", "tf2", "--check", "load"
    )
    assert {role: counts["same"] for role, counts in verdict(world)["counts"].items()} == {
        "reads": 1,
        "writes": 2,
        "both": 1,
    }


def test_an_interrupted_gate_is_incomplete_and_goes_on(world):
    world.behave([f"old/*/tf2@{CANDIDATE}/load", {"interrupt": True}])
    done = gate(world)
    assert (done.returncode, done.stdout) == (130, "")
    assert "interrupted" in done.stderr and "--resume" in done.stderr
    executed = len(world.executed())
    world.behave()
    assert gate(world, "--resume").returncode == 0
    again = world.executed()[executed:]
    assert len(again) < executed
    assert not {cell for _, cell in again} & {cell for _, cell in world.executed()[: executed - 1]}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--check", "loud"), 64, "no check is called loud. Did you mean load"),
        (("--case", "nobody"), 64, "the selection holds no cell"),
        (("--candidate", "no such thing"), 64, "no such thing"),
        (
            ("--candidate", "tensorflow==2.12.0", "--no-install"),
            4,
            "savedmodel-compat runtimes install tensorflow==2.12.0",
        ),
    ],
)
def test_what_cannot_be_asked(world, arguments, code, said):
    done = gate(world, *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


# Folders of earlier runs
# --------------------------------------------------------------------------------------------------


def folder(world, version, outcome):
    out = world.root / f"run-{version}-{outcome}"
    out.mkdir()
    what = (DESELECTED,) if outcome == "NOT_RUN" else ()
    made = run(out, (cell(written="1.15.5", producer="fixture", read=version), outcome, *what))
    made.plan.write(out / "plan.json")
    write_results(out / "results.jsonl", made.results.values())
    return out


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("PASS", "PASS", 0),
        ("CRASH", "PASS", 0),
        ("PASS", "CRASH", 1),
        ("PASS", "NOT_RUN", 1),
        ("PASS", "SETUP_ERROR", 4),
    ],
)
def test_two_folders_are_compared_without_running_anything(world, before, after, code):
    a, b = folder(world, OLD, before), folder(world, NEW, after)
    done = world.command("gate", "compare", a, b, "--out", world.out)
    assert done.returncode == code
    assert verdict(world)["baseline"] == {"label": OLD, "spec": str(a)}
    assert not world.executed()


@pytest.mark.parametrize("what", ["cases", "fixtures", None])
def test_the_command_that_finds_the_release_names_the_run_of_models_that_are_not_ours(world, what):
    a, b = folder(world, "2.18.0", "PASS"), folder(world, NEW, "CRASH")
    RunFile.of_now(folders={what: str(world.root)} if what else {}).write(b)
    done = world.command("gate", "compare", a, b, "--out", world.out)
    command = (
        f"savedmodel-compat gate bisect c/fixture@1.15.5/tf2@{NEW}/values --from 2.18 --to 2.21"
    )
    command += f" --run {b}" if what else ""
    assert f"first release: {command}\n" in done.stdout
    for name, end in (("gate.md", "</code>"), ("gate.html", "</code>")):
        page = re.sub("&#(\\d+);", _character, (world.out / name).read_text().replace("<wbr>", ""))
        assert command + end in page
    assert ("run" in verdict(world)["candidate"]) is bool(what)


@pytest.mark.parametrize(
    ("candidate", "code"), [(CANDIDATE, 1), ("candidate", 1), (VERSION, 64), ("2.98.0", 64)]
)
def test_two_versions_of_a_run_that_exists(world, candidate, code):
    world.behave([f"old/*/c_api@{CANDIDATE}/load", FAIL])
    run_ = world.root / "run"
    two = ("--runtime", "local", "--runtime", "candidate=local", "--all-checks")
    world.run(*two, "--case", "old", "--check", "load", out=run_)
    done = world.command("gate", "compare", VERSION, candidate, "--run", run_, "--out", world.out)
    assert done.returncode == code, done.stderr
    why = (
        "baseline and candidate are the same"
        if candidate == VERSION
        else f"2.98.0 is not in {run_}"
    )
    assert code != 64 or why in done.stderr


def test_a_folder_and_a_runtime_cannot_be_compared(world):
    run_ = folder(world, OLD, "PASS")
    done = world.command(
        "gate", "run", "--baseline", run_, "--candidate", "local", "--out", world.out
    )
    assert (done.returncode, "`gate compare` compares finished runs" in done.stderr) == (64, True)
    done = world.command("gate", "compare", run_, "local", "--out", world.out)
    assert (done.returncode, not world.executed()) == (64, True), done.stderr


def test_without_an_output_folder_a_comparison_writes_nothing(world):
    a, b = folder(world, OLD, "PASS"), folder(world, NEW, "PASS")
    done = world.command("gate", "compare", a, b)
    assert (done.returncode, [*world.root.rglob("gate*")]) == (0, []), done.stderr


def test_a_dry_run_lists_the_cells_of_both_and_the_reasons_of_the_others(world):
    done = gate(world, "--dry-run", "--case", "old", "--check", "load,reexport")
    assert (done.returncode, world.executed(), world.out.exists()) == (0, [], False), done.stderr
    lines = done.stdout.splitlines()
    assert f"old/fixture@1.15.5/tf2@{CANDIDATE}/load" in lines
    assert any("/c_api@" in line and "NOT_APPLICABLE: " in line for line in lines)


# One thing twice, and what was named and not asked
# ------------------------------------------------------------------------


# Without TensorFlow an interpreter is refused for that.
THIS = pytest.param(sys.executable, marks=pytest.mark.tensorflow)


@pytest.mark.parametrize("candidate", ["local", THIS, "again=local"])
def test_one_tensorflow_on_both_sides_is_refused(world, candidate):
    """Such a gate says OK of every candidate: a variable of a pipeline was set to the wrong
    value.
    """
    done = gate(world, "--candidate", candidate, same=False)
    assert done.returncode == 64, done.stdout + done.stderr
    assert "are the same" in done.stderr and "--same" in done.stderr
    assert not world.executed()


@pytest.mark.parametrize("how", ["itself", "a link", "a copy"])
def test_one_run_on_both_sides_is_refused(world, how):
    a, b = folder(world, OLD, "PASS"), world.root / "other"
    if how == "itself":
        b = a / "." / ".." / a.name
    elif how == "a link":
        b.symlink_to(a)
    else:
        shutil.copytree(a, b)
    command = ("gate", "compare", a, b, "--out", world.out)
    done = world.command(*command)
    assert done.returncode == 64 and "are the same" in done.stderr, done.stderr
    assert world.command(*command, "--same").returncode == 0


def test_a_consumer_that_was_named_and_cannot_be_asked_leaves_the_gate_incomplete(world):
    done = gate(world, "--consumer", "tf2,cpp", "--case", "old")  # this world has no C++ loader
    assert done.returncode == 3, done.stdout + done.stderr
    assert "INCOMPLETE: " in done.stdout and "consumer cpp (" in done.stdout
    assert [one["name"] for one in verdict(world)["named_not_asked"]] == ["cpp"]


def test_the_help_and_the_page_name_the_checks_that_are_asked_by_default():
    shown = " ".join(CliRunner().invoke(main, ["gate", "run", "--help"]).stdout.split())
    assert f"Default: {','.join(READING)}, which write nothing." in shown
    page = (Path(__file__).parents[2] / "docs/releases/gate.md").read_text()
    asked, left_out = (
        page.partition("**Which checks.**")[2].split("\n\n")[0].split("`--all-checks`")[:2]
    )
    assert all(f"`{name}`" in asked for name in READING)
    assert all(f"`{name}`" in asked + left_out for name in CHECKS)
