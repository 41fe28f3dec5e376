"""The kind `function`: a tf.function with its traces."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_function_chooses_among_its_traces(tf, round_trip, by_name):
    model = tf.Module()
    model.f = tf.function(lambda x, double=True: x * 2 if double else x)
    model.f(tf.constant(1.0))
    model.f(tf.constant(1.0), double=False)
    loaded = round_trip(model)
    assert loaded.f(tf.constant(3.0)).numpy() == 6.0
    assert loaded.f(tf.constant(3.0), double=False).numpy() == 3.0
    assert len(by_name("f").function.concrete_functions) == 2
