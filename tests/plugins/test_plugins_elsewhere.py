"""Plug-ins in `gate` and `grid`: whom a release of TensorFlow concerns, and who has a version of
its own. Needs no TensorFlow.
"""

import json
import sys

import pytest
from click.testing import CliRunner
from matrix_world import FAIL, VERSION
from plugin_world import page_files, plugin_world

from compat_matrix.runtimes.runtime import Runtime
from savedmodel_compat.cli import main

CANDIDATE = f"{VERSION}+candidate"


@pytest.fixture
def world(tmp_path):
    """One case, one fixture and the plug-ins of the page, the consumer with the version of the
    TensorFlow that is in use.
    """
    made = plugin_world(page_files(tmp_path))
    made.case("alpha", ['("serving_default", {"x": 1})'])
    made.fixture("old")
    text = (
        (tmp_path / "plugins.toml").read_text().replace('version = "0.1"', f'version = "{VERSION}"')
    )
    (tmp_path / "plugins.toml").write_text(text.replace("expectations =", "# expectations ="))
    return made


def gate(world, *arguments):
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
    names = (
        "--baseline",
        "local",
        "--candidate",
        "local",
        "--same",
        "--plugins",
        "plugins.toml",
        "--check",
        "load",
    )
    return world.command("gate", "run", *names, *here, *arguments, "--", "-p", "matrix_double")


def facts(world):
    return {
        (fact["role"], fact["pair"]): fact
        for fact in json.loads((world.out / "gate.json").read_text())["facts"]
    }


def test_a_gate_compares_what_plug_ins_read_and_write(world):
    """A consumer reads what both wrote, an exporter's models are read by both; what no TensorFlow
    touches is not run.
    """
    world.behave(
        [f"alpha/tf2@{CANDIDATE}/mine@*/load", FAIL],
        [f"linear/mytrainer@1.0/c_api@{CANDIDATE}/load", FAIL],
    )
    done = gate(world)
    assert done.returncode == 1, done.stdout + done.stderr
    found = facts(world)
    regressed = {key for key, fact in found.items() if fact["kind"] == "regressed"}
    assert (
        regressed
        == set(found)
        == {("writes", "alpha/tf2/mine/load"), ("reads", "linear/mytrainer/c_api/load")}
    )
    replay = found["writes", "alpha/tf2/mine/load"]["candidate"]["replay"]
    assert f"--plugins {world.root}/plugins.toml" in replay
    executed = {cell for _, cell in world.executed()}
    assert (
        f"linear/mytrainer@1.0/tf2@{VERSION}/load" in executed
        and "linear/mytrainer@1.0/-/produce" in executed
    )
    assert not [cell for cell in executed if "/mine@" in cell and not cell.startswith("alpha/")]
    again = world.command(
        "gate", "compare", VERSION, CANDIDATE, "--run", world.out / "run", "--out", world.out
    )
    assert (again.returncode, facts(world).keys()) == (1, found.keys()), again.stderr


def test_a_gate_makes_only_the_exports_that_somebody_reads(world):
    assert gate(world, "--consumer", "mine").returncode == 0
    assert {cell.split("/")[1] for _, cell in world.executed()} == {
        f"{name}@{v}" for name in ("tf2", "reference") for v in (VERSION, CANDIDATE)
    }
    done = gate(world, "--consumer", "mine", "--producer", "mytrainer")
    assert done.returncode == 64 and "no release" in done.stderr, done.stderr


@pytest.fixture
def grid(world, monkeypatch):
    """Arguments of `grid` -> what it would run, in two runtimes."""
    orders = []
    asked = (Runtime("new", world.root, "2.21.0"), Runtime("old", world.root, "2.12.1"))
    monkeypatch.setattr(
        "compat_matrix.commands.parts.planned.asked_runtimes", lambda names, install: asked
    )
    monkeypatch.setattr(
        "compat_matrix.engine.running.carry_out",
        lambda *given: orders.append(given[1]) or {"exit_code": 0},
    )
    monkeypatch.chdir(world.root)

    def run(*arguments):
        command = ["matrix", "run", "--grid", "--out", "out", *arguments]
        done = CliRunner().invoke(main, command, standalone_mode=False)
        assert done.exception is None, done.output
        return [orders[-1].plan.by_id[cell] for cell in sorted(orders[-1].chosen)], orders[-1]

    return run


def crossed(cells):
    return {
        (f"{c.producer}@{c.producer_version}", f"{c.consumer}@{c.consumer_version}")
        for c in cells
        if not c.is_production
    }


def test_a_grid_has_a_row_and_a_column_of_each_plug_in(grid):
    sample = f"numpy_sample={sys.executable} numpy_consumer.py"
    cells, order = grid(
        "--plugins", "plugins.toml", "--consumer", "tf2", "--consumer", "mine", "--consumer", sample
    )
    seen = crossed(cells)
    for writer in ("tf2@2.21.0", "tf2@2.12.1", "mytrainer@1.0"):
        for reader in ("tf2@2.21.0", "tf2@2.12.1", f"mine@{VERSION}", "numpy_sample@1.0"):
            assert (writer, reader) in seen, sorted(seen)
    assert {cell.case for cell in cells if cell.producer == "mytrainer"} == {"linear", "scaled"}
    assert "tree_tuples" in {cell.case for cell in cells}  # the usual ones too
    made = [cell for cell in cells if cell.is_production and cell.producer == "mytrainer"]
    assert len(made) == 2 and [one.name for one in order.registry.theirs[1]] == ["mytrainer"]
    assert order.options[:1] == ("--plugins",)


def test_cases_that_are_named_narrow_the_plug_ins_too(grid):
    cells, _ = grid(
        "--plugins",
        "plugins.toml",
        "--case",
        "linear,tree_tuples",
        "--consumer",
        "mine",
        "--producer",
        "*",
    )
    assert {cell.case for cell in cells} == {"linear", "tree_tuples"}
    assert {cell.consumer for cell in cells} == {"mine", "-"}


def test_a_server_is_no_plug_in(world):
    (world.root / "consumers.toml").write_text('[consumer.mine]\ncommand = ["no-such-program"]\n')
    for words, said in (
        (("--plugins", "consumers.toml"), "consumers.toml declares no producer"),
        (("--consumer", "mine"), "the consumers are servers here"),
    ):
        done = world.command("matrix", "run", "--servers-only", "--out", world.out, *words)
        assert (done.returncode, said in done.stderr) == (64, True), done.stderr
