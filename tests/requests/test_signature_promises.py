"""An answer is held against what its signature promises: names, dtypes, ranks and known sizes."""

import numpy as np
import pytest

from compat_matrix.requests.promises import broken_promises
from savedmodel_common.tensors import from_numpy

PROMISED = {"y": {"dtype": "float32", "shape": [None, 2]}}


def answered(**arrays):
    return {name: from_numpy(array) for name, array in arrays.items()}


def kinds(promised, got, whole=True):
    return [item.kind for item in broken_promises(promised, got, whole)]


@pytest.mark.parametrize(
    ("array", "broken"),
    [
        (np.zeros([3, 2], np.float32), []),
        (np.zeros([0, 2], np.float32), []),
        (np.zeros([3, 2], np.float64), ["dtype"]),
        (np.zeros([3, 3], np.float32), ["shape"]),
        (np.zeros([2], np.float32), ["shape"]),
        (np.zeros([3, 2, 1], np.int32), ["dtype", "shape"]),
    ],
)
def test_dtype_rank_and_known_sizes(array, broken):
    assert kinds(PROMISED, answered(y=array)) == broken


def test_what_a_signature_leaves_open_fits_every_answer():
    for promise in (
        {"dtype": "invalid", "shape": None},
        {"dtype": "float32_ref", "shape": [None, -1]},
    ):
        assert kinds({"y": promise}, answered(y=np.zeros([3, 2], np.float32))) == []


def test_names():
    got = answered(q=np.zeros([3, 2], np.float32))
    assert kinds(PROMISED, got) == ["names"]
    (found,) = broken_promises(PROMISED, got)
    assert "'y'" in str(found) and "'q'" in str(found)
    assert kinds(PROMISED, {}, whole=False) == []
