"""A custom gradient that uses a tensor of the function that it differentiates (FMT-14)."""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("writer", ["tensorflow", "reference"])
def test_a_gradient_uses_a_tensor_of_its_function(tf, tmp_path, writer):
    @tf.custom_gradient
    def cubed(x):
        y = x * x
        return y * x, lambda dy: dy * 3.0 * y + 1.0

    root = tf.Module()
    root.f = tf.function(cubed, input_signature=[tf.TensorSpec([])])
    if writer == "reference":
        reference_impl.save(root, tmp_path / "m")
    else:
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(root, str(tmp_path / "m"), options=options)
    reference_impl.save(reference_impl.load(tmp_path / "m"), tmp_path / "again")
    for folder in ("m", "again"):
        loaded = reference_impl.load(tmp_path / folder)
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded.f(x)
        assert (y.numpy(), tape.gradient(y, x).numpy()) == (8.0, 13.0)
