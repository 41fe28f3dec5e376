"""The kind `container`: lists, dicts, tuples and namedtuples."""

from __future__ import annotations

import collections

import pytest

from reference_impl.format import names

pytestmark = pytest.mark.tensorflow


def test_containers_keep_their_type_and_elements(tf, round_trip, by_name):
    pair = collections.namedtuple("pair", "left right")
    model = tf.Module()
    model.items = [tf.Variable(1.0), {"k": tf.Variable(2.0)}]
    model.both = (tf.Variable(3.0), tf.Variable(4.0))
    model.pair = pair(tf.Variable(5.0), tf.Variable(6.0))
    loaded = round_trip(model)
    assert isinstance(loaded.items, list) and loaded.items[1]["k"].numpy() == 2.0
    assert isinstance(loaded.both, tuple) and [v.numpy() for v in loaded.both] == [3.0, 4.0]
    assert (loaded.pair.left.numpy(), loaded.pair[1].numpy()) == (5.0, 6.0)
    assert by_name("items").user_object.identifier == names.LIST
    assert by_name("both").user_object.identifier == names.TUPLE


def test_a_list_may_be_the_root(tf, round_trip):
    wrapper = tf.Module()
    wrapper.items = [tf.Variable(1.0)]
    loaded = round_trip(wrapper.items)
    assert [item.numpy() for item in loaded] == [1.0]
    assert dict(loaded.signatures) == {}
