"""Ops on variables, tables and lists, and what a float precision changes. No TensorFlow."""

from types import SimpleNamespace

import numpy as np
import pytest

from reference_eval import registry
from reference_eval.state import Table, Variable


def evaluate(op, *inputs, **attributes):
    return registry.known()[op].evaluate(*inputs, **attributes)


def test_slices_of_a_variable():
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    variable = Variable("v", value.dtype, value)
    found = evaluate("ResourceGatherNd", variable, np.int32([[1, 0], [0, 2]]))
    assert found.tolist() == [3, 2]


def test_keys_are_removed_from_a_table():
    strings, numbers = np.dtype(object), np.dtype(np.int64)
    table = Table(strings, numbers, mutable=True)
    evaluate("LookupTableInsertV2", table, np.array([b"a", b"b"], object), np.int64([1, 2]))
    evaluate("LookupTableRemoveV2", table, np.array([b"b", b"missing"], object))
    assert list(table.items) == [b"a"]


def test_the_top_of_the_first_version_of_the_op():
    values, places = evaluate("TopK", np.int32([1, -(2**31), 2**31 - 1, 1]), k=4)
    assert values.tolist() == [2**31 - 1, 1, 1, -(2**31)]
    assert places.tolist() == [2, 0, 3, 1]


def test_bits_are_not_cast_in_another_precision():
    call = SimpleNamespace(precision=np.dtype(np.float64))
    with pytest.raises(ValueError, match="without `precision`"):
        evaluate("Bitcast", np.float64([1]), type=np.dtype(np.int32), call=call)
