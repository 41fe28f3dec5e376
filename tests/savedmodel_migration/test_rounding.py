"""Gradients that rounding alone moves: they are not compared, and not called different."""

from __future__ import annotations

import numpy as np
import pytest

from savedmodel_migration.keras_2_to_3.prove import GRADIENTS, _if_comparable
from savedmodel_migration.keras_2_to_3.rounding import LARGEST, Rounding

pytestmark = pytest.mark.tensorflow


def rounding(times):
    """How rounding moves a number that grows by a factor for each step of a map."""

    def run(nest):
        x = nest.numpy()
        for _ in range(times):
            x = 3.9 * x * (1 - x)
        return {"gradient": np.asarray(x, "float64")}

    tf = pytest.importorskip("tensorflow")
    x = tf.constant([0.3] * 4)
    return Rounding(run, run(x), [], x)


def part_of(times):
    return rounding(times).part(["gradient"], 1.0)


def test_gradients_that_rounding_moves_are_not_compared_and_others_are():
    differs = (GRADIENTS, "differs", "kernel differs by 0.47")
    assert part_of(1) < LARGEST < part_of(40)
    assert _if_comparable(differs, part_of(1)) == differs
    what, state, why = _if_comparable(differs, part_of(40))
    assert (what, state) == (GRADIENTS, "none") and "rounding alone moves" in why


def test_the_bound_of_statistics_is_what_rounding_does_where_that_is_more_than_the_largest_bound():
    measured = rounding(40)
    assert (
        measured.bound("gradient")
        <= LARGEST
        < part_of(40)
        < measured.bound("gradient", capped=False)
    )
    assert rounding(1).bound("gradient") == rounding(1).bound("gradient", capped=False)
