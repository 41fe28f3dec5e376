"""The limit LIVE_BYTES counts arguments, and tensors inside lists. No TensorFlow."""

from types import SimpleNamespace

import numpy as np
import pytest

from reference_eval import EvaluationLimitError, registry, sizes
from reference_eval.executor import Executor, Run
from reference_eval.plan import Plan, Step
from reference_eval.state import OptionalValue, TensorList, size_of

VARIANT, FLOAT = np.dtype(object), np.dtype(np.float32)
KILOBYTE = np.zeros(256, np.float32)
EMPTY = TensorList(FLOAT, (256,))


def push(name, values):
    """Return a step that appends the argument ``x`` to a list."""
    output = [(f"{name}:output_handle:0", VARIANT)]
    op = "TensorListPushBack"
    kernel = registry.known()[op]
    return Step(name, op, [values, "x"], [None, None], output, [None], {}, [values], kernel)


def run(monkeypatch, limit):
    """Append a tensor of 1 kB to an empty list twice, and return the list."""
    monkeypatch.setattr(sizes, "LIVE_BYTES", limit)
    steps = [push("one", "list"), push("two", "one:output_handle:0")]
    plan = Plan("f", [("list", VARIANT), ("x", FLOAT)], steps, ["two:output_handle:0"])
    source = SimpleNamespace(functions={}, file="saved_model.pb")
    return Run(Executor(source, registry.known())).function(plan, [EMPTY, KILOBYTE])[0]


def test_tensors_in_lists_count(monkeypatch):
    """At most `x` (1 kB), the list of one tensor and the list of two are alive."""
    assert size_of(run(monkeypatch, 4096)) == 2048
    with pytest.raises(EvaluationLimitError) as error:
        run(monkeypatch, 4095)
    assert error.value.limit == "LIVE_BYTES"


def test_arguments_count(monkeypatch):
    with pytest.raises(EvaluationLimitError):
        run(monkeypatch, 1023)


@pytest.mark.parametrize(
    "op, inputs, size",
    [
        ("TensorListSetItem", [np.int32(0), KILOBYTE[:1]], 1028),
        ("TensorListPushBack", [KILOBYTE], 3072),
        ("TensorListResize", [np.int32(1)], 1024),
    ],
)
def test_the_size_of_a_changed_list(op, inputs, size):
    values = TensorList(FLOAT, None, (KILOBYTE, KILOBYTE))
    changed = registry.known()[op].evaluate(values, *inputs)
    assert size_of(changed) == size
    assert size_of(changed) == size_of(TensorList(FLOAT, None, changed.elements))


def test_the_sizes_of_other_values():
    assert size_of(OptionalValue((KILOBYTE, KILOBYTE))) == 2048
    assert size_of(OptionalValue(None)) == size_of(None) == 0
