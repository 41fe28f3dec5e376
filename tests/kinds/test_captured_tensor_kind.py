"""The kind `captured_tensor`: a tensor of another function, which a custom gradient uses."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_custom_gradient_uses_a_tensor_of_the_function(tf, round_trip, nodes):
    @tf.custom_gradient
    def halved(x):
        y = tf.exp(x)
        return y, lambda up: up * y / 2

    model = tf.Module()
    model.f = tf.function(halved, input_signature=[tf.TensorSpec([], tf.float32)])
    loaded, x = round_trip(model), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    assert tape.gradient(y, x).numpy() == pytest.approx(y.numpy() / 2)
    assert any(node.HasField("captured_tensor") for node in nodes())
