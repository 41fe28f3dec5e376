"""The kind `bare_concrete_function`: one trace as an object of the model."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_concrete_function_keeps_the_names_of_its_arguments(tf, round_trip, by_name):
    model = tf.Module()
    specs = [tf.TensorSpec([], tf.float32, "a"), tf.TensorSpec([], tf.float32, "b")]
    model.f = tf.function(lambda a, b: a - b).get_concrete_function(*specs)
    loaded = round_trip(model)
    assert loaded.f(a=tf.constant(5.0), b=tf.constant(3.0)).numpy() == 2.0
    assert list(by_name("f").bare_concrete_function.argument_keywords) == ["a", "b"]
