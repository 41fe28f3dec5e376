"""Digests of answers: equal exactly when the comparison without a tolerance finds no difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compat_matrix.requests.digest import answer_digest
from savedmodel_common.compare import (
    EXACT,
    compare_named,
    compare_nests,
    flatten,
)
from savedmodel_common.tensors import Tensor, from_numpy

SIGNATURE, FUNCTION = {"kind": "signature"}, {"kind": "function"}
ODD_NAN = np.array([0x7FC00001], np.uint32).view(np.float32)

VALUES = [
    from_numpy(np.float32([0.0])),
    from_numpy(np.float32([-0.0])),
    from_numpy(np.float32(0.0)),
    from_numpy(np.float64([0.0])),
    from_numpy(np.float32([[0.0]])),
    from_numpy(np.int32([0])),
    from_numpy(np.float32([np.nan])),
    from_numpy(ODD_NAN),
    from_numpy(np.complex64([complex(np.nan, 1)])),
    from_numpy(np.complex64([complex(np.nan, 2)])),
    Tensor("bfloat16", np.array([0x7FC0], np.uint16)),
    Tensor("bfloat16", np.array([0x7FC1], np.uint16)),
    Tensor("float16", np.array([0], np.float16)),
    from_numpy([b"ab", b"c"]),
    from_numpy([b"a", b"bc"]),
    from_numpy(np.zeros([0, 2], np.float32)),
    from_numpy(np.zeros([2, 0], np.float32)),
]


@pytest.mark.parametrize("one", VALUES)
def test_equal_digests_mean_bit_equal_answers(one: Tensor) -> None:
    for other in VALUES:
        same = not compare_named({"y": one}, {"y": other}, EXACT)
        assert (
            answer_digest(SIGNATURE, None, {"y": one})
            == answer_digest(SIGNATURE, None, {"y": other})
        ) is same


def test_a_digest_of_a_signature_depends_on_names_not_on_their_order() -> None:
    a, b = VALUES[0], VALUES[5]
    assert answer_digest(SIGNATURE, None, {"x": a, "y": b}) == answer_digest(
        SIGNATURE, None, {"y": b, "x": a}
    )
    assert answer_digest(SIGNATURE, None, {"x": a}) != answer_digest(SIGNATURE, None, {"y": a})


def nest(*names: str) -> dict[str, Any]:
    return {
        "$dict": [
            ["a", {"$tuple": [{"$tensor": names[0]}, 1]}],
            ["b", {"$sparse": list(names[1:])}],
        ]
    }


def test_a_digest_of_a_function_depends_on_places_not_on_the_names_of_tensors() -> None:
    named = {f"o{i}": from_numpy(np.float32([i])) for i in range(4)}
    renamed = {f"p{9 - i}": from_numpy(np.float32([i])) for i in range(4)}
    left, right = nest("o0", "o1", "o2", "o3"), nest("p9", "p8", "p7", "p6")
    assert answer_digest(FUNCTION, left, named) == answer_digest(FUNCTION, right, renamed)
    assert answer_digest(FUNCTION, left, named) != answer_digest(
        FUNCTION, nest("o1", "o0", "o2", "o3"), named
    )
    assert answer_digest(FUNCTION, left, named) != answer_digest(
        FUNCTION, {"$list": left["$dict"]}, named
    )
    assert answer_digest(FUNCTION, {"$tuple": [1]}, {}) != answer_digest(
        FUNCTION, {"$tuple": [2]}, {}
    )


def test_the_paths_of_flattened_tensors_are_those_of_the_comparison() -> None:
    named = {f"o{i}": from_numpy(np.float32([i])) for i in range(4)}
    other = {name: from_numpy(tensor.array + 1) for name, tensor in named.items()}
    structure = nest("o0", "o1", "o2", "o3")
    paths = [
        difference.where for difference in compare_nests(structure, structure, named, other, EXACT)
    ]
    assert list(flatten(structure, named)[1]) == paths
