"""What a watched load tells of functions and the checkpoint."""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


def test_functions_and_values_are_told(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.f = tf.function(lambda x: x + root.v, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(root, str(tmp_path / "m"))
    steps = []
    loaded = reference_impl.load(tmp_path / "m", trace=steps.append)
    told = [str(step) for step in steps]
    assert any("not registered yet" in line for line in told)
    assert any("opened; values: 2" in line for line in told)
    assert any("float32[2]" in line for line in told)
    before = len(steps)
    loaded.f(tf.constant([1.0, 1.0]))
    (registered,) = [str(step) for step in steps[before:]]
    assert "registered" in registered and "RP-07" in registered
