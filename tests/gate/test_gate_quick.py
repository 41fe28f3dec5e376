"""`gate --quick`: few models that together have every feature, in a minute."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from compat_matrix.cases import all_cases
from compat_matrix.gate import quick, run
from compat_matrix.report.cell_costs import recorded
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.verdict import Ledger
from savedmodel_compat.cli import main

MINUTE = 60
PROCESSES = 2


def test_the_models_have_every_feature_and_none_is_there_for_nothing():
    cases = {case.name: set(case.features) for case in all_cases()}
    picked = quick.models(None, None)
    assert set().union(*cases.values()) == set().union(
        *(own for name, own in cases.items() if name in picked)
    )
    assert len(picked & set(cases)) < len(cases) / 2


@pytest.mark.parametrize(
    ("features", "costs", "expected"),
    [
        ({"a": ["x"], "b": ["x", "y"], "c": ["y"]}, {}, {"b"}),
        ({"a": ["x"], "b": ["x", "y"], "c": ["y"]}, {"b": 9.0}, {"a", "c"}),
        ({"b": ["x"], "a": ["x"]}, {}, {"a"}),
        ({"a": []}, {}, set()),
    ],
)
def test_models_are_chosen_for_what_they_add_and_cost(features, costs, expected):
    assert quick.chosen(features, costs) == expected


def test_it_takes_a_minute_where_the_costs_of_cells_were_measured():
    """By the costs that a whole run has recorded, not by a clock."""
    local = local_runtime()
    sides = [
        Runtime(name, local.python, version, {})
        for name, version in (("old", "2.20.0"), ("new", "2.21.0"))
    ]
    scope = run.Scope(checks=quick.CHECKS, quick=True)
    plan = run.plan_of(sides, scope, Ledger())
    asked = run.asked(plan, scope)
    seconds = sum(recorded().of(cell) for cell in plan if cell.id in asked and not cell.decided)
    assert 10 < seconds / PROCESSES + recorded().start < MINUTE


@pytest.mark.tensorflow
def test_a_green_quick_gate_names_what_it_left_out(tmp_path):
    words = [
        "gate",
        "run",
        "--baseline",
        "local",
        "--candidate",
        "local",
        "--same",
        "--quick",
        "--case",
        "tree_tuples",
    ]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    assert set(verdict["not_asked"]) >= {"check", "consumer", "producer"}
    assert (
        "reference" in verdict["not_asked"]["consumer"]
        and "reexport" in verdict["not_asked"]["check"]
    )
    assert "not asked: " in done.output
