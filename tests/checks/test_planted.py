"""Faults planted in a loader turn the cases red that claim to test what is lost; the record of all
has no gap.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_matrix.cases import all_cases
from compat_matrix.runtimes.runtime import local_runtime
from docs import planted
from property_tests.planted import cases, faults, kinds, worker

IN_THE_PROCESS = {
    worker.ACCEPTS,
    worker.STALE,
    worker.SWALLOWED,
    worker.OTHER_THREADS,
    worker.THIRD_CALL,
}


def test_every_case_has_a_fault_that_a_check_finds():
    assert set(cases.CASES) == {case.name for case in all_cases()}
    assert planted.faults() == []


def test_every_fault_is_planted_and_says_what_is_lost():
    of_cases = {fault.rpartition(":")[2] for names in cases.CASES.values() for fault in names}
    texts = "".join(
        path.read_text(encoding="utf-8") for path in Path(kinds.__path__[0]).glob("*.py")
    )
    of_kinds = {name for name in faults.FAULTS if f'("{name}")' in texts or f':{name}")' in texts}
    assert set(faults.FAULTS) | IN_THE_PROCESS == of_cases | of_kinds
    assert all(planted.told()[name] for name in of_cases)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    from property_tests.planted import running

    if local_runtime().tensorflow_version is None:
        pytest.skip("no TensorFlow in this environment")
    with running.Planted(tmp_path_factory.mktemp("planted")) as planted_:
        yield planted_


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("case", "fault", "check"),
    [
        ("var_attributes", "trainable", "objects"),
        ("fn_custom_gradient", "custom_gradients", "objects"),
        ("fn_custom_gradient", "standard_gradients", "objects"),
        ("fn_gradient_orders", "standard_gradients", "objects"),
        ("sig_outputs", "other_threads", "values"),
        ("sig_outputs", "third_call", "values"),
        ("sig_refused_request", "swallowed_errors", "values"),
        ("tree_containers", "captures", "objects"),
        ("fn_attributes", "saver:function_attributes", "reexport"),
        ("var_attributes", "stale_values", "reexport"),
        ("refused_root", "accepts", "produce"),
    ],
)
def test_a_planted_fault_is_found(place, case, fault, check):
    seen = place.plant(case, fault)
    assert seen["check"] == check, seen


@pytest.mark.tensorflow
def test_nothing_is_found_where_nothing_is_planted(place):
    assert place.plant("var_attributes", "")["check"] == ""
