"""The kind `resource`: a table is created, filled and initialised by functions of the model."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_static_table_is_filled_by_its_initialiser(tf, round_trip, by_name):
    model = tf.Module()
    model.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1
    )
    model.find = tf.function(
        lambda key: model.table.lookup(key), input_signature=[tf.TensorSpec([], tf.string)]
    )
    loaded = round_trip(model)
    assert [loaded.find(key).numpy() for key in ("a", "b", "c")] == [1, 2, -1]
    names = {child.local_name for child in by_name("table").children}
    assert {"_create_resource", "_initialize", "_destroy_resource"} <= names


def test_the_content_of_a_mutable_table_is_in_the_checkpoint(tf, round_trip, by_name):
    model = tf.Module()
    model.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    model.table.insert(tf.constant(["a"]), tf.constant([7], tf.int64))
    model.find = tf.function(
        lambda key: model.table.lookup(key), input_signature=[tf.TensorSpec([], tf.string)]
    )
    assert round_trip(model).find("a").numpy() == 7
    assert len(by_name("table").saveable_objects) == 1
