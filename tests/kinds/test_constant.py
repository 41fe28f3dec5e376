"""The kind `constant`: an eager tensor that a function captures, kept in a Const node."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("value", [[1.5, 2.5], [b"a", b"\xff"]])
def test_a_captured_tensor_is_a_constant(tf, round_trip, nodes, value):
    captured = tf.constant(value)
    model = tf.Module()
    model.f = tf.function(lambda: tf.identity(captured), input_signature=[])
    assert round_trip(model).f().numpy().tolist() == value
    assert [node.constant.operation for node in nodes() if node.HasField("constant")] == ["Const"]
