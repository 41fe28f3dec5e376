"""The kind `variable`: settings in the object graph, the value in the checkpoint."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_variable_has_its_value_and_settings(tf, round_trip, by_name):
    model = tf.Module()
    model.weight = tf.Variable([[1.0, 2.0]], trainable=False, name="w", shape=[None, 2])
    loaded = round_trip(model)
    assert loaded.weight.numpy().tolist() == [[1.0, 2.0]]
    assert (loaded.weight.trainable, loaded.weight.shape.as_list()) == (False, [None, 2])
    assert by_name("weight").variable.name == "w"
    loaded.weight.assign([[3.0, 4.0], [5.0, 6.0]])


def test_a_variable_may_be_the_root(tf, round_trip):
    loaded = round_trip(tf.Variable(5.0))
    assert isinstance(loaded, tf.Variable) and loaded.numpy() == 5.0
    assert dict(loaded.signatures) == {}
