"""Faults of every kind are found by the command that is declared for them: some for every commit,
all of them every night.
"""

from __future__ import annotations

import pytest

from docs import faults as page
from property_tests.planted.kinds import tensorflows
from property_tests.planted.kinds.running import Stage
from property_tests.planted.kinds.table import TABLE
from property_tests.profiles import NAME, NIGHTLY


@pytest.fixture(scope="module")
def stage(tmp_path_factory, tf):
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "fault",
    [fault for fault in TABLE if fault.gate or NAME == NIGHTLY],
    ids=lambda fault: fault.name,
)
def test_the_command_finds_the_fault(stage, fault):
    assert stage.plant(fault).defect == ""


def test_the_record_is_of_the_faults_as_they_are_declared():
    assert page.faults() == []


def test_each_fault_of_a_tensorflow_has_a_row_on_the_page():
    rows = {fault.name for fault in tensorflows.ROWS}
    assert set(tensorflows.FAULTY) == rows
    assert all(f"| {name} |" in page.page() for name in rows)


def test_a_name_is_of_one_fault():
    assert len({fault.name for fault in TABLE}) == len(TABLE)
