"""The kind `user_object`: any other object, with its children as attributes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_an_object_has_its_children_as_attributes(tf, round_trip, by_name):
    model = tf.Module()
    model.part = tf.Module()
    model.part.weight = tf.Variable(1.0)
    model.part.__call__ = tf.function(
        lambda x: x * model.part.weight, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    loaded = round_trip(model)
    assert loaded.part.weight.numpy() == 1.0
    assert loaded.part(tf.constant(2.0)).numpy() == 2.0
    assert by_name("part").user_object.identifier == "_generic_user_object"


def test_python_state_is_kept_for_the_next_save(tf, round_trip, tmp_path):
    class Count(tf.train.experimental.PythonState):
        def serialize(self):
            return "7"

        def deserialize(self, string_value):
            raise AssertionError("the class is not known to the load")

    model = tf.Module()
    model.count = Count()
    round_trip(round_trip(model))
    keys = [
        name for name, _ in tf.train.list_variables(str(tmp_path / "model/variables/variables"))
    ]
    assert "count/.ATTRIBUTES/py_state" in keys


def test_a_child_that_python_would_call_is_no_attribute(tf, round_trip):
    model = tf.Module()
    model._trackable_children_ = tf.Variable(1.0)
    assert round_trip(model)["_trackable_children_"].numpy() == 1.0
