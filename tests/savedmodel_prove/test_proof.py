"""The walk of a proof with sides that are Python functions."""

import numpy as np
import pytest
from model_edits import fixture

from reference_impl.format.container import layout
from savedmodel_common.tensors import from_numpy
from savedmodel_prove import proof, questions
from savedmodel_prove.questions import NoQuestion
from savedmodel_prove.sides.side import SideError
from savedmodel_prove.verdicts import Kind

MODEL = fixture("conv_batch_norm")


class Function:
    """A side that is a Python function."""

    name, versions = "function", {}

    def __init__(self, function):
        self.function = function

    def answer(self, inputs):
        return {"y": from_numpy(self.function(inputs["x"].array))}

    def values(self, inputs):
        raise SideError("a function names no values")


def rows(x):
    return x.reshape(len(x), 72)[:, :2]


def proved(original, converted, folder):
    target = questions.target_of(layout.read(MODEL), ("serve",), "serving_default")
    sides = proof.Sides(Function(original), Function(converted))
    return proof.prove(target, MODEL, sides, seed=0, count=2, beside=folder)


def test_two_functions_that_are_one(tmp_path):
    found = proved(rows, rows, tmp_path)
    assert [verdict.kind for verdict in found.verdicts] == [Kind.EQUAL]
    assert found.notes == []


def test_an_original_that_draws_numbers_is_told(tmp_path):
    random = np.random.default_rng(0)
    drawn = []

    def drawing(x):
        drawn.append(random.normal(scale=1e-7, size=(len(x), 2)).astype(np.float32))
        return rows(x) + drawn[-1]

    found = proved(drawing, rows, tmp_path)
    assert any("y" in note and "each time" in note for note in found.notes)


def test_an_original_that_counts_its_calls_is_not_comparable(tmp_path):
    calls = []

    def counting(x):
        calls.append(x)
        return rows(x) + np.float32(10 * (len(calls) > 20))

    (verdict,) = proved(counting, rows, tmp_path).verdicts
    assert verdict.kind is Kind.NOT_COMPARABLE


def test_an_input_that_the_original_refuses_is_a_note(tmp_path):
    def picky(x):
        if len(x) == 0:
            raise SideError("there are no rows")
        return rows(x)

    found = proved(picky, rows, tmp_path)
    assert ["empty batch" in note and "no rows" in note for note in found.notes] == [True]


def test_an_original_that_refuses_everything(tmp_path):
    def refusing(x):
        raise SideError("never")

    with pytest.raises(NoQuestion, match="never"):
        proved(refusing, rows, tmp_path)
