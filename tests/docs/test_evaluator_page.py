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


@pytest.mark.parametrize("name", sorted(RECORD["ops"]))
def test_what_is_stated_as_exact_was_equal(name):
    distances = {
        dtype: ulp
        for dtype, (ulp, _) in RECORD["ops"][name].items()
        if not dtype.startswith("complex") and (name, dtype) not in OTHER_THAN_THE_KERNEL
    }
    if stated(name).startswith("exact"):
        assert {dtype: ulp for dtype, ulp in distances.items() if ulp != 0} == {}
    else:  # None is of what has no distance, as the bytes of a PNG file
        assert {dtype: ulp for dtype, ulp in distances.items() if (ulp or 0) >= 10**9} == {}
