"""The tables of the benchmarks; what they measure is not a matter of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import run

pytestmark = [pytest.mark.tensorflow]  # its version is a part of the tables

COMPARISON = ("load: a model", "ours", "theirs", (1.0, 2.0, 30.0), (10.0, 10.0, 10.0), 0.5, "written by hand")


def test_a_goal_that_is_missed_is_said():
    from benchmarks import Comparison
    from benchmarks.memory import Peak

    good, bad = Comparison(*COMPARISON), Comparison(*COMPARISON[:3], COMPARISON[4], COMPARISON[3], *COMPARISON[5:])
    small, large = Peak("small", 2**20, 2**20, 2**21), Peak("large", 2**20, 2**21, 2**21)
    assert (good.ratio, good.reached, bad.reached, small.reached, large.reached) == (0.2, True, False, True, False)
    lines = run.markdown([good, bad], [small, large]).split("\n")
    assert [line.rsplit("|", 2)[1].strip() for line in lines if line.startswith(("| load", "| small", "| large"))] == [
        "ok",
        "MISSED",
        "ok",
        "MISSED",
    ]


def test_the_tables_of_the_page_are_replaced_and_nothing_else():
    page = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    new = run.replaced(page, "THE TABLES")
    assert new.split(run.BEGIN)[0] == page.split(run.BEGIN)[0] and new.split(run.END)[1] == page.split(run.END)[1]
    assert run.replaced(new, "THE TABLES") == new
    with pytest.raises(ValueError, match="no lines"):
        run.replaced("a page", "THE TABLES")
