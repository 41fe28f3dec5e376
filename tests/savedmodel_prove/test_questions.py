"""The inputs of a proof: made from one base that the original answers."""

import numpy as np
import pytest
from model_edits import fixture

from reference_impl.format.container import layout
from savedmodel_prove import questions
from savedmodel_prove.questions import NoQuestion
from savedmodel_prove.records import Answer

EVERY = Answer()


def target(case, key="serving_default"):
    return questions.target_of(layout.read(fixture(case)), ("serve",), key)


def made(case, key="serving_default", answer=lambda _: EVERY, seed=0, count=2):
    found = questions.made(target(case, key), answer, seed, count)
    return {question.name: question.inputs for question in found}


def test_random_inputs_edges_and_batches():
    found = made("conv_batch_norm")
    assert {"random 0", "random 1", "zeros", "ones", "large", "small", "empty batch"} <= set(found)
    assert {name: inputs["x"].array.shape[0] for name, inputs in found.items() if "batch" in name} == {
        "batch 1": 1,
        "batch 4": 4,
        "empty batch": 0,
    }  # fmt: skip
    assert not found["zeros"]["x"].array.any()
    assert np.abs(found["large"]["x"].array).max() > 100
    assert {str(inputs["x"].array.dtype) for inputs in found.values()} == {"float32"}


def test_a_seed_gives_the_same_inputs_again():
    one, other = made("conv_batch_norm", seed=3), made("conv_batch_norm", seed=3)
    np.testing.assert_array_equal(one["random 1"]["x"].array, other["random 1"]["x"].array)
    assert not np.array_equal(
        one["random 0"]["x"].array, made("conv_batch_norm", seed=4)["random 0"]["x"].array
    )


def test_the_parts_of_a_sparse_input_fit_together():
    counts = {}
    for name, inputs in made("sparse_io").items():
        prefix = next(one.removesuffix("values") for one in inputs if one.endswith("/values"))
        counts[name] = len(inputs[f"{prefix}indices"].array), len(inputs[f"{prefix}values"].array)
    assert all(indices == values for indices, values in counts.values()), counts


def test_a_base_that_the_original_refuses_is_not_used():
    asked = []

    def answer(inputs):
        asked.append(inputs["x"].array.shape)
        return Answer(error="not this batch") if len(asked) == 1 else EVERY

    made("conv_batch_norm", answer=answer)
    assert len(asked) == 2
    assert asked[0] != asked[1]


def test_an_original_that_answers_nothing_is_told():
    with pytest.raises(NoQuestion, match=r"\(it is broken\).* requests"):
        made("conv_batch_norm", answer=lambda _: Answer(error="it is broken"))


def test_a_signature_without_inputs_is_asked_once():
    assert list(made("conv_batch_norm", "moving_mean")) == ["no inputs"]


def test_open_sizes_are_those_of_the_converted_model():
    wanted = target("conv_batch_norm")
    found = list(questions.made(wanted, lambda _: EVERY, 0, 1, {"x": [3, -1, 9, -1]}))
    assert found[0].inputs["x"].array.shape == (3, 6, 6, 2)  # the original's own sizes stay
    other = list(questions.made(wanted, lambda _: EVERY, 0, 1, {"x": [3]}))
    assert other[0].inputs["x"].array.shape[1:] == (6, 6, 2)
