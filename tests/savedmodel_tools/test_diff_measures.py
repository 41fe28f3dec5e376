"""Numbers of a comparison: measured without NumPy where they are few, and at the right place where
they are many.
"""

from __future__ import annotations

import random
import struct

import model_edits
import numpy as np
import pytest

from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.values import dtypes
from savedmodel_tools.comparison.measures import Few
from savedmodel_tools.comparison.numbers import Distance
from savedmodel_tools.comparison.weights import ELEMENTS
from savedmodel_tools.diff import Options, diff

OPTIONS = (
    Options(),
    Options(rtol=1e-3, atol=0.0),
    Options(atol=0.5),
    Options(ulps=3),
    Options(rtol=1e-6, ulps=1),
)


def floats(rng, code):
    """Any finite ones, and those at the edges: zeros, the smallest, the largest, neighbours."""
    size = struct.calcsize(code)
    edges = [0.0, -0.0, 1.0, 1e16, 1e-5, 0.1, 16777216.0, 9999999.0, 2.0**-126, 3.0e38]
    while True:
        value = (
            struct.unpack(code, rng.randbytes(size))[0]
            if rng.random() < 0.7
            else rng.choice(edges) * rng.choice((1, -1))
        )
        if np.isfinite(value):
            return struct.unpack(code, struct.pack(code, value))[0]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("dtype", "code"), [("float32", "f"), ("float64", "d")])
@pytest.mark.filterwarnings("error")
def test_few_floats_are_measured_as_many_are(dtype, code, options):
    rng = random.Random(7)
    for _ in range(300):
        count = rng.randrange(1, 6)
        one = [floats(rng, code) for _ in range(count)]
        other = [value if rng.random() < 0.3 else floats(rng, code) for value in one]
        if rng.random() < 0.5:  # near, by steps
            array = np.array(one, dtype)
            other = np.nextafter(array, rng.choice((np.inf, -np.inf)), dtype=dtype)
            other = [float(value) if np.isfinite(value) else 1.0 for value in other]
        pair = [struct.pack(f"={count}{code}", *values) for values in (one, other)]
        distance = Distance(dtypes.by_name(dtype), dtypes.by_name(dtype), options)
        distance.add(*pair)
        found = Few(options).measures(dtype, *pair)
        expected = {name: getattr(distance, name) for name in vars(found)}
        assert vars(found) == expected, (one, other)


def test_what_is_not_finite_of_another_type_or_no_longer_few_is_left_to_numpy():
    few = Few(Options())
    assert few.measures("float32", struct.pack("f", float("nan")), struct.pack("f", 1)) is None
    assert few.measures("int32", bytes(4), bytes([1, 0, 0, 0])) is None
    block = bytes(4 * 1000), b"\0\0\x80\x3f" * 1000
    done = [few.measures("float32", *block) for _ in range(6)]
    assert [item is None for item in done] == [False] * 4 + [True] * 2
    assert done[0].differing == 1000


@pytest.mark.parametrize(
    ("dtype", "at"),
    [("float32", 2 * ELEMENTS + 5), ("complex64", ELEMENTS + 1), ("int32", ELEMENTS)],
)
def test_a_difference_behind_equal_pieces_is_told_at_its_place(tmp_path, dtype, at):
    for name in ("1", "2"):
        model_edits.write(model_edits.new_model()[0], tmp_path / name)
        array = np.zeros(2 * ELEMENTS + 10, dtype)
        array[at] = int(name)
        array[at + 1] = int(name) * 5
        with BundleWriter(tmp_path / name / "variables" / "variables", 1) as writer:
            writer.add("x", array)
    (change,) = [
        item for item in diff(tmp_path / "1", tmp_path / "2").changes if item.section == "variables"
    ]
    assert change.details["first"]["at"] == [at]
    assert change.details["max_abs_at"] == [at + 1] and change.details["max_abs"] == 5
