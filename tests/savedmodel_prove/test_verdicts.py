"""Verdicts: equal bits, noise, differences, and who is alone."""

import numpy as np
import pytest

from savedmodel_common.tensors import from_numpy
from savedmodel_prove.records import CONVERTED, EVALUATOR, EXACT, ORIGINAL, Answer, Record
from savedmodel_prove.verdicts import TENSORFLOW, Kind, judge, worst

X = np.float32([1.0, 2.0])


def record(name="random 0", spread=0.0, **arrays):
    sides = {"original": ORIGINAL, "converted": CONVERTED, "evaluator": EVALUATOR, "exact": EXACT}
    answers = {
        sides[side]: value if isinstance(value, Answer) else Answer({"y": from_numpy(value)})
        for side, value in arrays.items()
    }
    return Record(name, {}, answers, {"y": {"threads": spread}})


def verdict(*records):
    (found,) = judge(records)
    return found


def test_equal_bits():
    found = verdict(record(original=X, converted=X.copy()), record(original=X, converted=X))
    assert (found.kind, found.compared) == (Kind.EQUAL, 2)


def test_the_noise_of_the_original_allows_a_difference():
    moved = X + np.float32(1e-3)
    assert verdict(record(original=X, converted=moved)).kind is Kind.DIFFERS
    found = verdict(record(original=X, converted=moved, spread=4e-4))
    assert found.kind is Kind.WITHIN
    assert found.noise == 4e-4
    assert found.measured.absolute == pytest.approx(1e-3, rel=1e-3)
    assert found.measured.ulp > 1000


def test_noise_at_one_question_does_not_excuse_another():
    moved = X + np.float32(1e-3)
    noisy = record("silence", original=X, converted=moved, spread=0.05)
    quiet = record("random 0", original=X, converted=moved)
    found = verdict(noisy, quiet)
    assert (found.kind, found.question) == (Kind.DIFFERS, "random 0")


def test_float64_tells_the_rounding_of_the_original():
    exact = X.astype(np.float64) + 1e-3
    moved = X + np.float32(2e-3)
    found = verdict(record(original=X, converted=moved, exact=exact))
    assert (found.kind, found.noise) == (Kind.WITHIN, pytest.approx(1e-3))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, np.float32([1.0, np.nan])),
        (X, np.float32([1.0, np.inf])),
        (X, X.astype(np.float64)),
        (X, X[None]),
        (np.int32([1, 2]), np.int32([1, 3])),
        (np.array([True]), np.array([False])),
        (np.array([b"a"], object), np.array([b"b"], object)),
    ],
)
def test_what_no_noise_excuses(one, other):
    found = verdict(record(original=one, converted=other))
    assert found.kind is Kind.DIFFERS
    assert found.reason


def test_integers_may_move_as_far_as_the_original_moves():
    one, other = np.int32([1, 2]), np.int32([1, 3])
    assert verdict(record(original=one, converted=other, spread=1)).kind is Kind.WITHIN
    assert verdict(record(original=one, converted=other + 1, spread=1)).kind is Kind.DIFFERS


def test_an_error_and_a_missing_output_are_not_comparable():
    refused = verdict(record(original=X, converted=Answer(error="no kernel: Foo")))
    assert (refused.kind, refused.reason) == (Kind.NOT_COMPARABLE, "no kernel: Foo")
    missing = verdict(record(original=X, converted=Answer({"z": from_numpy(X)})))
    assert missing.kind is Kind.NOT_COMPARABLE
    assert "'y'" in missing.reason
    assert "z" in missing.reason


def test_an_input_that_cannot_be_compared_is_counted():
    refused = record("empty batch", original=X, converted=Answer(error="no rows"))
    found = verdict(record(original=X, converted=X), refused)
    assert (found.kind, found.compared) == (Kind.EQUAL, 1)
    assert "1 of 2" in found.reason
    assert "no rows" in found.reason


OTHER = X + np.float32(1)


@pytest.mark.parametrize(
    ("answers", "kind", "alone"),
    [
        ({"original": X, "converted": OTHER, "evaluator": X}, Kind.DIFFERS, CONVERTED),
        ({"original": OTHER, "converted": X, "evaluator": X}, Kind.DIFFERS, TENSORFLOW),
        ({"original": X, "converted": X, "evaluator": OTHER}, Kind.EQUAL, EVALUATOR),
        ({"original": X, "converted": OTHER, "evaluator": OTHER + 1}, Kind.DIFFERS, ""),
        ({"original": X, "converted": X, "evaluator": X}, Kind.EQUAL, ""),
        ({"original": X, "converted": OTHER}, Kind.DIFFERS, ""),
    ],
)
def test_who_is_alone(answers, kind, alone):
    found = verdict(record(**answers))
    assert (found.kind, found.alone) == (kind, alone)


def test_the_question_at_which_a_side_is_alone_is_kept():
    fine = record("zeros", original=X, converted=X, evaluator=X)
    found = verdict(fine, record("ones", original=X, converted=X, evaluator=OTHER))
    assert (found.alone, found.alone_at) == (EVALUATOR, "ones")


def test_the_evaluator_gives_quantized_integers_as_integers():
    quantized = Answer({"y": from_numpy(np.int8([1, 2]), "qint8")})
    agreeing = record(original=quantized, converted=quantized, evaluator=np.int8([1, 2]))
    assert verdict(agreeing).alone == ""
    other = record(original=quantized, converted=quantized, evaluator=np.int8([1, 3]))
    assert verdict(other).alone == EVALUATOR


def test_the_worst_verdict_leads():
    assert worst([]) is Kind.NOT_COMPARABLE
    found = judge([record(original=X, converted=X)])
    assert worst(found) is Kind.EQUAL
