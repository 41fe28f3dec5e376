"""The kind `optimizer`: a user object with slots."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_loaded_optimizer_has_its_slots(tf, round_trip):
    model = tf.Module()
    model.weight = tf.Variable([1.0, 2.0])
    model.optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.optimizer.apply_gradients([(tf.constant([1.0, 1.0]), model.weight)])
    loaded = round_trip(model)
    (name,) = loaded.optimizer.get_slot_names()
    slot = loaded.optimizer.get_slot(loaded.weight, name)
    assert slot.shape == loaded.weight.shape and slot.numpy().any()
