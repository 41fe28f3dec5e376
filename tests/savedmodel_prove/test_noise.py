"""The noise of the original: batches, repeats, neighbours; batches that count by design."""

import numpy as np
import pytest

from savedmodel_common.tensors import from_numpy
from savedmodel_prove import noise
from savedmodel_prove.questions import Question, has_batch, one_ulp_away, resized


class Function:
    """A side that is a Python function of one array."""

    name, versions = "function", {}

    def __init__(self, function):
        self.function, self.calls = function, 0

    def answer(self, inputs):
        self.calls += 1
        return {"y": from_numpy(self.function(inputs["x"].array, self.calls))}


SPEC = {"x": {"dtype": "float32", "shape": [None, 2]}}
TWO = {"x": from_numpy(np.float32([[1, 2], [3, 4]]))}


def spread(function, exact=None, threaded=None):
    side = Function(function)
    answer = side.answer(TWO)
    double = Function(exact or (lambda x, _: x.astype(np.float64)))
    other = threaded and Function(threaded)
    sources = noise.Sources(side, other, double)
    return noise.measure(Question("q", TWO), answer, sources, seed=0, batched=True)["y"]


def test_a_quiet_model_moves_only_with_its_inputs():
    found = spread(lambda x, _: x)
    assert found[noise.REPEATS] == found[noise.BATCHES] == 0
    assert 0 < found[noise.NEIGHBOURS] < 1e-6


def test_repeats_and_threads_are_measured():
    found = spread(lambda x, calls: x + np.float32(calls), threaded=lambda x, _: x + 100)
    assert found[noise.REPEATS] >= 1
    assert found[noise.THREADS] == pytest.approx(99)


def test_a_row_that_changes_with_its_batch_is_noise():
    found = spread(lambda x, _: x + np.float32(len(x)) / 1000)
    assert found[noise.BATCHES] == pytest.approx(2e-3, rel=1e-3)


def test_a_model_of_the_whole_batch_is_not_noisy():
    found = spread(
        lambda x, _: x - x.mean(axis=0), exact=lambda x, _: x.astype(float) - x.mean(axis=0)
    )
    assert found.get(noise.BATCHES, 0.0) == 0


def test_neighbours_are_one_ulp_away_and_integers_stay():
    inputs = {"x": from_numpy(np.ones(50, np.float32)), "n": from_numpy(np.arange(3))}
    moved = one_ulp_away(inputs, np.random.default_rng(0))
    assert set(moved["x"].array.tolist()) == {
        float(np.nextafter(np.float32(1), np.float32(0))),
        float(np.nextafter(np.float32(1), np.float32(2))),
    }
    assert moved["n"].array.tolist() == [0, 1, 2]


def test_rows_are_repeated_or_cut():
    assert resized(TWO, 5)["x"].array[:, 0].tolist() == [1, 3, 1, 3, 1]
    assert resized(TWO, 1)["x"].array.tolist() == [[1, 2]]
    assert resized(TWO, 0)["x"].array.shape == (0, 2)


@pytest.mark.parametrize(
    ("shape", "expected"), [([None, 2], True), ([2, 2], False), (None, True), ([], False)]
)
def test_a_batch_is_an_open_first_dimension(shape, expected):
    assert has_batch({"x": {"dtype": "float32", "shape": shape}}, TWO) is expected
