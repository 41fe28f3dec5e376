"""The tables of the benchmarks, and the zoo that one of them migrates; what they measure is not a matter of tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import migrate, run
from compat_matrix.canonical.form import canonical
from compat_matrix.models.migrate.plan import plan_of

pytestmark = [pytest.mark.tensorflow]  # its version is a part of the tables

COMPARISON = ("load: a model", "ours", "theirs", (1.0, 2.0, 30.0), (10.0, 10.0, 10.0), 0.5, "written by hand")


def test_a_goal_that_is_missed_is_said():
    from benchmarks import Comparison
    from benchmarks.memory import Peak

    good, bad = Comparison(*COMPARISON), Comparison(*COMPARISON[:3], COMPARISON[4], COMPARISON[3], *COMPARISON[5:])
    small, large = Peak("small", 2**20, 2**20, 2**21), Peak("large", 2**20, 2**21, 2**21)
    assert (good.ratio, good.reached, bad.reached, small.reached, large.reached) == (0.2, True, False, True, False)
    quick, slow = migrate.Rate(1000, 200.0, 300.0, 2**30), migrate.Rate(1000, 200.1, 300.0, 2**30)
    lines = run.markdown([good, bad], [small, large], [quick, slow]).split("\n")
    rows = [line for line in lines if line.startswith(("| load", "| small", "| large", "| migrate"))]
    assert [line.rsplit("|", 2)[1].strip() for line in rows] == ["ok", "MISSED", "ok", "MISSED", "ok", "MISSED"]


def test_the_tables_of_the_page_are_replaced_and_nothing_else():
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    new = run.replaced(page, "THE TABLES")
    assert new.split(run.BEGIN)[0] == page.split(run.BEGIN)[0] and new.split(run.END)[1] == page.split(run.END)[1]
    assert run.replaced(new, "THE TABLES") == new
    with pytest.raises(ValueError, match="no lines"):
        run.replaced("a page", "THE TABLES")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """A model of every kind, and the folder in which they were migrated."""
    folder = tmp_path_factory.mktemp("zoo")
    migrate.measure(folder, 12)  # raises what is not wholly proved
    return folder


def test_every_kind_of_the_zoo_is_converted(zoo):
    actions = {path.name: plan_of(path).action for path in (zoo / "zoo").iterdir()}
    assert len({name.split("-")[1] for name in actions}) == 12
    assert actions.pop("0008-two_graphs") == "convert into 2, one for each set of tags"
    assert set(actions.values()) == {"convert"}


def test_the_zoo_is_the_same_whoever_makes_it_and_no_two_models_are_alike(zoo, tmp_path):
    command = [sys.executable, "-m", "benchmarks.models.zoo", str(tmp_path), "--count", "24"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    again = {path.name: canonical(path).hash for path in sorted(tmp_path.iterdir())}
    kinds = [name.split("-")[1] for name in again]
    assert kinds[:12] == kinds[12:] and len(set(again.values())) == 24
    assert {path.name: canonical(path).hash for path in (zoo / "zoo").iterdir()} == dict(list(again.items())[:12])


@pytest.mark.parametrize(
    ("lose", "says"),
    [
        (lambda model: model.update(status="unproved"), "of 12 models 11 were migrated"),
        (lambda model: model["parts"][0].update(not_asked={"y": "no"}), "not proved: y: no"),
        (lambda model: model["parts"][0]["verdicts"].pop(), "not proved: next generation"),
    ],
)
def test_a_run_that_proved_less_gives_no_rate(zoo, tmp_path, lose, says):
    (tmp_path / "models").symlink_to(zoo / "out/models")
    report = json.loads((zoo / "out/report.json").read_text())
    (tmp_path / "report.json").write_text(json.dumps(report))
    migrate.check(tmp_path, 12)
    lose(report["models"][3])
    (tmp_path / "report.json").write_text(json.dumps(report))
    with pytest.raises(RuntimeError, match=says):
        migrate.check(tmp_path, 12)
