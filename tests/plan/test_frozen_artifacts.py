"""What TensorFlow 2 releases wrote, in the plan: every consumer reads it, and little more is asked."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.generators import fixtures_root
from compat_matrix.cells.registry import OURS
from compat_matrix.plan.changed import effect_of
from compat_matrix.plan.planning import (
    FROZEN,
    READS,
    RESAVED,
    Axes,
    PlanError,
    frozen_artifacts,
    make_plan,
)
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger
from fixtures_v2 import collection


@pytest.fixture(scope="module")
def frozen_cells():
    return [cell for cell in make_plan(Ledger()) if cell.case in collection.cases()]


def test_every_artifact_is_planned_once_for_each_consumer_and_check(frozen_cells):
    wanted = {
        (case, collection.releases()[release].tensorflow)
        for release in collection.releases()
        for case, _ in collection.wanted(release)
    }
    asked = Counter(
        (cell.case, cell.producer_version)
        for cell in frozen_cells
        if (cell.producer, cell.consumer, cell.check) == ("fixture", "tf2", "values")
    )
    assert set(asked) == wanted
    assert set(asked.values()) == {1}


def test_only_one_case_of_each_release_is_saved_anew(frozen_cells):
    checks = {cell.check for cell in frozen_cells}
    assert checks == {*READS, "reexport"}
    resaved = {cell.case for cell in frozen_cells if cell.check == "reexport"}
    assert resaved == {RESAVED}
    versions = {cell.producer_version for cell in frozen_cells if cell.check == "reexport"}
    assert len(versions) == len(collection.releases())


def test_a_plug_in_is_asked_about_the_folder_of_one_case_alone():
    mine = replace(CONSUMERS["tf2"], name="mine", version="1.0")
    registry = OURS.having([mine])
    plan = make_plan(Ledger(), registry=registry)
    asked = {cell.case for cell in plan if cell.consumer == "mine"}
    assert "half_plus_two" in asked
    assert asked & set(collection.cases()) == set()
    plan = make_plan(Ledger(), fixtures_root(FROZEN) / "tf2_tuples", registry=registry)
    releases = {cell.producer_version for cell in plan if cell.consumer == "mine"}
    assert len(releases) == len(collection.releases()) - 1  # there is none of TF 2.0


def test_a_model_server_is_asked_about_the_folder_of_one_case_alone():
    server = Runtime("s", Path("python"), "2.21.0", server="standin", consumer="standin")
    axes = Axes([server], served_only=True)
    plan = make_plan(Ledger(), axes=axes)
    asked = {cell.case for cell in plan if cell.consumer == "standin"}
    assert "half_plus_two" in asked
    assert asked & set(collection.cases()) == set()
    plan = make_plan(Ledger(), fixtures_root(FROZEN) / "tf2_tuples", axes=axes)
    assert {cell.case for cell in plan if cell.consumer == "standin"} == {"tf2_tuples"}


def test_a_pattern_of_names_selects_them():
    found = frozen_artifacts(fixtures_root(FROZEN), ["tf2_tu*"])
    assert {one.case for one in found} == {"tf2_tuples"}


def test_a_given_folder_of_artifacts_stands_in_their_place(tmp_path):
    shutil.copytree(fixtures_root() / "half_plus_two", tmp_path / "half_plus_two")
    assert {cell.case for cell in make_plan(Ledger(), tmp_path)} == {"half_plus_two"}


def test_an_artifact_without_provenance_is_not_left_out_silently(tmp_path):
    case = tmp_path / "tf2_tuples"
    shutil.copytree(collection.ROOT / "tf2_tuples", case)
    (case / "2.4" / "provenance.json").unlink()
    with pytest.raises(PlanError, match=r"2\.4 has no provenance\.json"):
        frozen_artifacts(tmp_path)


def test_a_changed_artifact_is_a_changed_case():
    changes = effect_of(["fixtures_v2/tf2_tuples/2.4/model/saved_model.pb"])
    assert (changes.everything, changes.cases) == (None, {"tf2_tuples"})
