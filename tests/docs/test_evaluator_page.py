"""The figures of the page `evaluator.md`: every op has a line, most signatures are evaluated, and no
op is further from TensorFlow than its file states.
"""

import json
import sys

import pytest

from docs import evaluator
from reference_eval import registry

RECORD = json.loads(evaluator.RECORD.read_text(encoding="utf-8"))
# The file of the op says what the kernel does instead.
OTHER_THAN_THE_KERNEL = {("Erf", "float64"), ("Round", "int32"), ("Round", "int64")}


def stated(name):
    """Return the accuracy that the file of an op states."""
    return evaluator.accuracy(sys.modules[registry.known()[name].evaluate.__module__].__doc__)


def test_every_op_has_a_line_with_its_accuracy():
    page = evaluator.page()
    assert [name for name in registry.known() if f"| [`{name}`](" not in page] == []
    assert [name for name in registry.known() if not stated(name)] == []


def test_nine_of_ten_signatures_are_evaluated():
    total, evaluated = evaluator.counts(RECORD["artifacts"])
    assert total > 500
    assert evaluated / total >= 0.9


def test_every_measured_op_is_one_of_ours():
    assert set(RECORD["ops"]) <= set(registry.known())


def test_the_ops_were_held_against_two_older_releases():
    releases = evaluator.by_release(RECORD)
    assert len(releases) >= 3
    assert min(map(len, releases.values())) > 150


def test_every_difference_between_releases_has_a_reason():
    found = {(one.op, one.dtype) for one in evaluator.differences(RECORD)}
    assert found == set(evaluator.REASONS)


def test_a_difference_between_releases_is_found():
    older = {"2.1": {"Exp": {"half": [None, 0.0]}, "Log": {"half": [18.0, 0.1]}}}
    ops = {"Exp": {"half": [1.0, 0.1]}, "Log": {"half": [2.0, 0.1]}}
    record = {"tensorflow": "2.3", "ops": ops, "older": older}
    (found,) = evaluator.differences(record)
    assert found == ("Exp", "half", {"2.1": "differs", "2.3": "1 ulp"})
    ops["Log"]["half"] = [91.0, 0.1]
    assert [one.op for one in evaluator.differences(record)] == ["Exp", "Log"]


@pytest.mark.parametrize("release", evaluator.by_release(RECORD))
@pytest.mark.parametrize("name", sorted(RECORD["ops"]))
def test_what_is_stated_as_exact_was_equal(name, release):
    distances = {
        dtype: ulp
        for dtype, (ulp, _) in evaluator.by_release(RECORD)[release].get(name, {}).items()
        if not dtype.startswith("complex") and (name, dtype) not in OTHER_THAN_THE_KERNEL
    }
    if stated(name).startswith("exact"):
        assert {dtype: ulp for dtype, ulp in distances.items() if ulp != 0} == {}
    else:  # None is of what has no distance, as the bytes of a PNG file
        assert {dtype: ulp for dtype, ulp in distances.items() if (ulp or 0) >= 10**9} == {}
