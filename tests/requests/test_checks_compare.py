"""Comparison of tensors, names, nests and signatures. Needs no TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compat_matrix.checks.kinds.signatures import compare_signatures
from compat_matrix.requests import policies as policies_module
from compat_matrix.requests.policies import Policy
from savedmodel_common.compare import (
    COMPLEX,
    EXACT,
    FLOATS,
    Tolerance,
    compare_named,
    compare_nests,
    compare_tensor,
)
from savedmodel_common.limits import limit_of
from savedmodel_common.tensors import Tensor, from_numpy

LOOSE = Tolerance(rtol=1e-3, atol=1e-3)
NAN, INF = float("nan"), float("inf")


def tensor(value: Any, dtype: str) -> Tensor:
    if dtype == "string":
        return from_numpy(np.array(value, dtype=object))
    if hasattr(ml_dtypes, dtype):
        return from_numpy(np.array(value, dtype=getattr(ml_dtypes, dtype)))
    if dtype.startswith("q"):
        return from_numpy(np.array(value, dtype=dtype[1:]), dtype)
    return from_numpy(np.array(value, dtype=dtype))


EQUAL = [
    ("float32", [1.0, NAN, INF, -0.0], [1.0, NAN, INF, -0.0], EXACT),
    ("float32", [], [], EXACT),
    ("float64", 1.5, 1.5, EXACT),
    ("float32", [1.0, 1000.0], [1.0005, 1000.9], LOOSE),
    ("float32", [0.0, -0.0], [-0.0, 0.0], LOOSE),
    ("float32", [INF, -INF, NAN], [INF, -INF, NAN], LOOSE),
    ("bfloat16", [1.0, NAN], [1.0, NAN], EXACT),
    ("bfloat16", [1.0], [1.0], LOOSE),
    ("float8_e4m3fn", [0.5, NAN], [0.5, NAN], EXACT),
    ("complex64", [complex(NAN, 1)], [complex(NAN, 1)], EXACT),
    ("complex64", [complex(1, 1)], [complex(1.0005, 1)], LOOSE),
    ("string", [b"a", b"", b"\0\xff"], [b"a", b"", b"\0\xff"], EXACT),
    ("bool", [True, False], [True, False], EXACT),
    ("qint8", [1, -1], [1, -1], EXACT),
]


@pytest.mark.parametrize(("dtype", "expected", "got", "tolerance"), EQUAL)
def test_equal(dtype: str, expected: Any, got: Any, tolerance: Tolerance) -> None:
    assert compare_tensor("y", tensor(expected, dtype), tensor(got, dtype), tolerance) is None


DIFFERENT = [
    ("float32", [1.0], [np.nextafter(np.float32(1), np.float32(2))], EXACT, "max ulp error 1"),
    ("float32", [0.0], [-0.0], EXACT, "is -0.0, expected 0.0"),
    ("float32", [1.0], [NAN], EXACT, "is nan, expected 1.0"),
    ("float32", [NAN], [1.0], LOOSE, "is 1.0, expected nan"),
    ("float32", [INF], [3e38], LOOSE, "expected inf"),
    ("float32", [INF], [-INF], LOOSE, "is -inf"),
    ("float32", [1.0, 1000.0], [1.01, 1000.9], LOOSE, "element [0]"),
    ("float64", [1.0], [-1.0], EXACT, "max abs error 2"),
    ("float16", [1.0], [1.001], EXACT, "max ulp error 1"),
    (
        "bfloat16",
        [1.0],
        [1.0078125],
        EXACT,
        "is 1.0078125, expected 1.0 (1 of 1 differ, max abs error 0.0078125, max ulp error 1)",
    ),
    ("bfloat16", [1.0], [2.0], LOOSE, "is 2.0"),
    ("float8_e5m2", [1.0], [1.25], EXACT, "max ulp error 1"),
    ("complex64", [complex(1, NAN)], [complex(NAN, 1)], EXACT, "[0]"),
    ("complex128", [complex(1, 1)], [complex(1, 1.1)], LOOSE, "[0]"),
    ("complex64", [complex(0, 0)], [complex(0, -0.0)], EXACT, "[0]"),
    (
        "int64",
        [[1, 2], [3, 4]],
        [[1, 2], [3, 5]],
        LOOSE,
        "element [1, 1] is 5, expected 4 (1 of 4 differ)",
    ),
    ("uint8", 1, 2, EXACT, "the scalar is 2, expected 1"),
    ("qint8", [1], [2], LOOSE, "is 2, expected 1"),
    ("bool", [True], [False], EXACT, "is False, expected True"),
    ("string", [b"a", b"b"], [b"a", b"c"], EXACT, "element [1] is b'c', expected b'b'"),
    ("string", [b"a"], [b"a\0"], EXACT, r"is b'a\x00'"),
]


@pytest.mark.parametrize(("dtype", "expected", "got", "tolerance", "words"), DIFFERENT)
def test_different(dtype: str, expected: Any, got: Any, tolerance: Tolerance, words: str) -> None:
    difference = compare_tensor("y", tensor(expected, dtype), tensor(got, dtype), tolerance)
    assert difference is not None
    assert difference.kind == "value"
    assert words in str(difference)


def test_a_dtype_and_a_shape_are_compared_before_the_elements() -> None:
    one = tensor([1.0], "float32")
    difference = compare_tensor("y", one, tensor([1.0], "float64"))
    assert difference is not None and (difference.kind, str(difference)) == (
        "dtype",
        "y: is float64, expected float32",
    )
    # The same carrier, so that nothing but the name tells them apart.
    assert compare_tensor("y", tensor([1], "int8"), tensor([1], "qint8")) is not None
    difference = compare_tensor("y", one, tensor([[1.0]], "float32"))
    assert difference is not None and (difference.kind, difference.details) == (
        "shape",
        {"expected": [1], "got": [1, 1]},
    )
    assert (
        compare_tensor("y", tensor([], "float32"), tensor(np.zeros((0, 2)), "float32")) is not None
    )
    assert compare_tensor("y", tensor(1.0, "float32"), tensor([1.0], "float32")) is not None


def test_errors_are_taken_over_finite_elements() -> None:
    difference = compare_tensor(
        "y", tensor([1.0, 2.0, NAN], "float32"), tensor([INF, 2.5, 7.0], "float32")
    )
    assert difference is not None
    assert difference.details["differing"] == 3
    assert difference.details["max_abs_error"] == 0.5
    difference = compare_tensor(
        "y",
        tensor([-np.finfo("float64").max], "float64"),
        tensor([np.finfo("float64").max], "float64"),
    )
    assert difference is not None
    assert difference.details["max_ulp_error"] > 2**63


def test_arrays_need_not_be_contiguous_or_aligned() -> None:
    wide = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert compare_tensor("y", Tensor("float32", wide.T), from_numpy(np.array(wide.T))) is None
    shifted = np.frombuffer(b"\0" + wide.tobytes(), dtype=np.float32, offset=1).reshape(2, 4)
    assert compare_tensor("y", Tensor("float32", shifted), from_numpy(wide)) is None


def test_names_are_compared_and_the_rest_all_the_same() -> None:
    expected = {"a": tensor([1], "int32"), "b": tensor([2], "int32")}
    found = compare_named(expected, {"b": tensor([3], "int32"), "c": tensor([4], "int32")}, EXACT)
    assert [item.kind for item in found] == ["names", "value"]
    assert "missing 'a'" in str(found[0])
    assert "unexpected 'c'" in str(found[0])
    assert compare_named(expected, dict(reversed(expected.items())), EXACT) == []


A, B = tensor([1.0], "float32"), tensor([2.0], "float32")


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        ({"$tensor": "o0"}, {"$tensor": "o0"}, None),
        ([{"$tensor": "o0"}, 1], [{"$tensor": "o0"}, 1], None),
        ([1, 2], {"$tuple": [1, 2]}, "result: is a tuple of 2 (0, 1), expected a list of 2 (0, 1)"),
        ({"$tuple": [1, 2]}, {"$tuple": [1]}, "result: is a tuple of 1"),
        ({"$dict": [["a", 1]]}, {"$dict": [["b", 1]]}, "expected a dict of 1 (a)"),
        (
            {"$dict": [["a", [True]]]},
            {"$dict": [["a", [1]]]},
            "result['a'][0]: is int 1, expected bool True",
        ),
        (
            {"$namedtuple": ["P", [["x", 1]]]},
            {"$namedtuple": ["Q", [["x", 1]]]},
            "is a Q of 1 (x), expected a P of 1 (x)",
        ),
        (
            {"$namedtuple": ["P", [["x", 1]]]},
            {"$namedtuple": ["P", [["x", 2]]]},
            "result['x']: is int 2, expected int 1",
        ),
        ({"$float": "nan"}, {"$float": "nan"}, None),
        ({"$float": "nan"}, {"$float": "inf"}, "result: is float inf, expected float nan"),
        (None, {"$tensor": "o0"}, "result: is a tensor, expected NoneType None"),
        (1, 1.0, "result: is float 1.0, expected int 1"),
        ({"$ragged": ["o0", "o0"]}, {"$ragged": ["o0"]}, "has 1 components, expected 2"),
    ],
)
def test_nests(expected: Any, got: Any, words: str | None) -> None:
    found = compare_nests(expected, got, {"o0": A}, {"o0": A}, EXACT)
    if words is None:
        assert found == []
    else:
        assert [item.kind for item in found] == ["structure"]
        assert words in str(found[0])


def test_tensors_of_nests_are_paired_by_place_not_by_name() -> None:
    expected, got = [{"$tensor": "o0"}, {"$tensor": "o1"}], [{"$tensor": "p1"}, {"$tensor": "p0"}]
    assert compare_nests(expected, got, {"o0": A, "o1": B}, {"p0": B, "p1": A}, EXACT) == []
    found = compare_nests(expected, got, {"o0": A, "o1": B}, {"p0": A, "p1": A}, EXACT)
    assert [item.where for item in found] == ["result[1]"]
    ragged = {"$ragged": ["o0", "o1"]}
    found = compare_nests(ragged, ragged, {"o0": A, "o1": B}, {"o0": A, "o1": A}, EXACT)
    assert [item.where for item in found] == ["result.ragged[1]"]


def spec(dtype: str | None = "float32", shape: Any = (None, 2)) -> dict[str, Any]:
    out: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    return out if shape == "unseen" else {**out, "shape": shape if shape is None else list(shape)}


def signatures(inputs: dict[str, Any], outputs: dict[str, Any], key: str = "f") -> dict[str, Any]:
    return {key: {"inputs": inputs, "outputs": outputs}}


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (
            signatures({"x": spec()}, {"y": spec()}),
            signatures({"x": spec(shape=(-1, 2))}, {"y": spec()}),
            None,
        ),
        (signatures({"x": spec(shape=None)}, {}), signatures({"x": spec(shape=None)}, {}), None),
        (
            signatures({"x": spec()}, {"y": spec()}),
            signatures({"x": spec(None, "unseen")}, {"y": spec(shape="unseen")}),
            None,
        ),
        (signatures({"x": spec()}, {"y": spec()}), {"f": {}}, None),
        (signatures({"x": spec("float32_ref")}, {}), signatures({"x": spec("float32")}, {}), None),
        (signatures({"x/values": spec()}, {}), signatures({"x_values": spec()}, {}), None),
        (signatures({}, {}), {}, "signature 'f' is missing"),
        ({}, signatures({}, {}), "signature 'f' is not in the file"),
        (
            signatures({"x": spec()}, {}),
            signatures({"x": spec("float64")}, {}),
            "input of 'f': 'x' has the dtype float64",
        ),
        (
            signatures({}, {"y": spec()}),
            signatures({}, {"y": spec(shape=(3, 2))}),
            "output of 'f': 'y' has the shape [3, 2]",
        ),
        (
            signatures({}, {"y": spec()}),
            signatures({}, {"y": spec(shape=None)}),
            "has the shape None",
        ),
        (signatures({"x": spec()}, {}), signatures({"z": spec()}, {}), "'x' is missing"),
        (
            signatures({}, {"y": spec()}),
            signatures({}, {"y": spec(), "z": spec()}),
            "'z' is not in the file",
        ),
    ],
)
def test_signatures(expected: Any, got: Any, words: str | None) -> None:
    found = compare_signatures(expected, got)
    if words is None:
        assert found == []
    else:
        assert words in found[0]


# What an artifact states about itself
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", sorted(FLOATS | COMPLEX.keys()))
def test_a_stated_tolerance_counts_up_to_the_limit_of_the_dtype(dtype: str) -> None:
    endless = Tolerance(stated_rtol=1e300, stated_atol=1e300)
    one = tensor([1.0], dtype)
    assert compare_tensor("y", one, tensor([1.0], dtype), endless) is None
    difference = compare_tensor("y", one, tensor([4.0], dtype), endless)
    assert difference is not None and f"for {dtype} only" in str(difference)
    near = 1 + limit_of(dtype).rtol  # what rounds to it is within
    assert compare_tensor("y", one, tensor([near], dtype), endless) is None
    assert (
        compare_tensor("y", one, tensor([4.0], dtype), Tolerance(rtol=1e300)) is None
    )  # as the user says


def test_every_policy_of_ours_is_within_the_limit_of_every_dtype() -> None:
    policies = [value for value in vars(policies_module).values() if isinstance(value, Policy)]
    assert len(policies) >= 5
    for policy in policies:
        bounds = policy.tolerance.bounds
        for dtype in FLOATS | COMPLEX.keys():
            assert Tolerance(stated_rtol=bounds.rtol, stated_atol=bounds.atol).of(dtype) == (
                bounds.rtol,
                bounds.atol,
            )


def test_what_a_consumer_allows_adds_to_what_an_artifact_states() -> None:
    allowed = Tolerance(stated_rtol=1e300).or_wider(0.5, 0.25)
    assert allowed.of("float32") == (0.5, 0.25)
    assert Tolerance(stated_rtol=1e-4).or_wider(*Tolerance(stated_atol=1e-5)).of("float32") == (
        1e-4,
        1e-5,
    )


def test_the_page_has_the_limits() -> None:
    page = (Path(__file__).parents[2] / "docs/exporters/requests.md").read_text()
    for dtype in FLOATS | COMPLEX.keys():
        limit = limit_of(dtype)
        assert f"| `{dtype}` | {limit.rtol:g} | {limit.atol:g} |" in page
