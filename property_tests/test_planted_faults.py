"""Each planted fault is found by who must notice it: some for every commit, all every night."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs import faults as page
from property_tests import faults
from property_tests.faults import cases, tensorflows
from property_tests.faults.catalogue import CATALOGUE
from property_tests.faults.declaring import Fault, NotHere
from property_tests.faults.found_by.case_checks import ChecksOfCase
from property_tests.faults.found_by.command import Command
from property_tests.faults.losses import LOSSES
from property_tests.faults.planting import implementation
from property_tests.faults.stage import Stage
from property_tests.profiles import NAME, NIGHTLY

OF_TENSORFLOW = (Command, ChecksOfCase)  # finders that run TensorFlow


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with Stage(tmp_path_factory.mktemp("stage")) as stage_:
        yield stage_


def chosen(*, tensorflow):
    """The faults that this profile plants."""
    planted = [fault for fault in CATALOGUE if fault.gate or NAME == NIGHTLY]
    return [fault for fault in planted if needs_tensorflow(fault) is tensorflow]


def needs_tensorflow(fault):
    return isinstance(fault.found_by, OF_TENSORFLOW) or "whole-save" in fault.name


def look(stage, fault):
    try:
        return fault.found_by.look(fault, stage)
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.mark.tensorflow
@pytest.mark.parametrize("fault", chosen(tensorflow=True), ids=lambda fault: fault.name)
def test_a_fault_of_a_model_or_of_tensorflow_is_found(stage, fault, tf):
    assert look(stage, fault).defect == ""


@pytest.mark.parametrize("fault", chosen(tensorflow=False), ids=lambda fault: fault.name)
def test_a_fault_of_a_worker_or_a_disk_is_found(stage, fault):
    assert look(stage, fault).defect == ""


@pytest.mark.tensorflow
def test_nothing_is_found_where_nothing_is_planted(stage, tf):
    fault = Fault("nothing", "nothing is wrong", implementation(""), ChecksOfCase("var_attributes"))
    seen = look(stage, fault)
    assert (seen.result, bool(seen.defect)) == ("", True)


def test_the_record_has_each_fault_as_it_is_declared():
    assert page.gaps() == []


def test_no_record_depends_on_where_the_checkout_lies():
    root = str(Path(__file__).parents[1])
    for fault in CATALOGUE:
        assert root not in repr(fault.found_by.declaration()), fault.name


def test_a_name_is_of_one_fault():
    assert len({fault.name for fault in CATALOGUE}) == len(CATALOGUE)


def test_each_fault_says_what_is_wrong_and_has_a_row_on_the_page():
    shown = page.page()
    for fault in CATALOGUE:
        assert fault.what, fault.name
        assert f"| {fault.name} |" in shown or f"| **{fault.name}** |" in shown, fault.name


def test_each_loss_is_planted():
    named = {name.rpartition(":")[2] for names in cases.CASES.values() for name in names}
    for module in Path(faults.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value.rpartition(":")[2])
    assert set(LOSSES) | set(cases.IN_THE_PROCESS) <= named


def test_each_faulty_tensorflow_is_planted():
    assert set(tensorflows.FAULTY) == {fault.name for fault in tensorflows.ROWS}
