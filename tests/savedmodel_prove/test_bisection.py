"""The first node at which a program parts from the evaluator, asked for one value at a time."""

from pathlib import Path

import numpy as np
import pytest

from reference_eval.registry import described
from reference_impl.format.container import layout
from savedmodel_common.tensors import from_numpy
from savedmodel_prove import bisection, proof, questions
from savedmodel_prove.records import EVALUATOR, ORIGINAL
from savedmodel_prove.sides.evaluator import Evaluator
from savedmodel_prove.sides.side import SideError
from savedmodel_prove.verdicts import TENSORFLOW

MODEL = Path(__file__).parents[1] / "data" / "prove" / "model"
KEY, TAGS = "serving_default", ("serve",)
INPUTS = {
    "image": from_numpy(np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)),
    "kind": from_numpy(np.int32([1, 4])),
}


class Fused:
    """A program with a fault in one op, which it has only where a value is asked alone."""

    name, versions = TENSORFLOW, {}

    def __init__(self, op, faulty):
        self.right = Evaluator(MODEL, TAGS, KEY)
        self.wrong = Evaluator(MODEL, TAGS, KEY, new_ops=[described([op], faulty)])
        self.asked = []

    def answer(self, inputs):
        return self.wrong.answer(inputs)

    def values(self, inputs):
        return self.right.values(inputs)

    def names(self):
        return list(self.right.values(INPUTS))

    def value(self, inputs, name):
        self.asked.append(name)
        return self.wrong.values(inputs)[name]


def softer(x):
    return np.tanh(x * np.float32(1.1))


def first(asked, output):
    evaluator = Evaluator(MODEL, TAGS, KEY)
    return bisection.first_apart(evaluator, None, asked, INPUTS, output)


@pytest.mark.parametrize("output", ["logits", "probabilities", "total", "features"])
def test_the_first_of_all_nodes_that_differ_is_found(output):
    asked = Fused("Tanh", softer)
    row = first(asked, output)
    assert (row.node, row.op, row.parts) == ("tanh", "Tanh", True)
    assert len(asked.asked) < len(asked.names()) / 2
    assert len(asked.asked) == len(set(asked.asked))


def test_a_fault_at_the_start_and_at_the_end():
    assert first(Fused("Conv2D", lambda *_, **__: wrong_convolution(*_)), "logits").node == "stem"
    assert first(Fused("Softmax", lambda x: x), "probabilities").node == "softmax"


def wrong_convolution(image, kernel):
    stride = image.shape[1] // 4
    return np.zeros((len(image), image.shape[1] // stride, 4, kernel.shape[3]), np.float32)


def test_an_output_that_does_not_depend_on_the_fault():
    assert first(Fused("Softmax", lambda x: x), "logits") is None


def proved(original, folder):
    target = questions.target_of(layout.read(MODEL), TAGS, KEY)
    right, exact = Evaluator(MODEL, TAGS, KEY), Evaluator(MODEL, TAGS, KEY, "float64")
    sides = proof.Sides(original, right, right, exact, traced=right)
    return proof.prove(target, MODEL, sides, seed=0, count=1, beside=folder)


def test_a_proof_bisects_where_all_values_together_are_right(tmp_path):
    found = proved(Fused("Tanh", softer), tmp_path)
    (node,) = found.nodes["logits"]
    assert (node.node, node.side) == ("tanh", ORIGINAL)
    assert any("logits" in note and "tanh" in note for note in found.notes)


def test_a_call_for_all_values_that_fails_is_no_obstacle(tmp_path):
    class Refusing(Fused):
        def values(self, inputs):
            raise SideError("not all at once")

    assert proved(Refusing("Tanh", softer), tmp_path).nodes["logits"][0].node == "tanh"


def test_a_program_that_names_nothing_is_told(tmp_path):
    class Silent:
        name, versions = TENSORFLOW, {}

        def __init__(self):
            self.wrong = Evaluator(MODEL, TAGS, KEY, new_ops=[described(["Tanh"], softer)])

        def answer(self, inputs):
            return self.wrong.answer(inputs)

        def values(self, inputs):
            raise SideError("it has no names")

    found = proved(Silent(), tmp_path)
    assert not found.nodes
    assert any(TENSORFLOW in note and "no names" in note for note in found.notes)


def test_the_evaluator_alone_is_named_at_the_question_where_it_is(tmp_path):
    target = questions.target_of(layout.read(MODEL), TAGS, KEY)
    ops = [described(["Tanh"], softer)]
    right = Evaluator(MODEL, TAGS, KEY)
    wrong, exact = (Evaluator(MODEL, TAGS, KEY, one, ops) for one in (None, "float64"))
    sides = proof.Sides(right, right, wrong, exact, traced=wrong)
    found = proof.prove(target, MODEL, sides, seed=0, count=1, beside=tmp_path)
    (logits,) = [one for one in found.verdicts if one.output == "logits"]
    assert (logits.alone, bool(logits.alone_at)) == (EVALUATOR, True)
    (node, *_) = found.nodes["logits"]
    assert (node.node, node.side, node.question) == ("tanh", EVALUATOR, logits.alone_at)
