"""Which arguments a trace accepts, and how its results are put together."""

from __future__ import annotations

import collections

import pytest

pytestmark = pytest.mark.tensorflow
Pair = collections.namedtuple("Pair", "a b")


@pytest.fixture
def match(tf):
    from reference_impl.functions import patterns

    def tensors(nest, value, convert=True):
        found = patterns.Tensors()
        patterns.pattern(nest)(value, convert, found)
        return [tensor.numpy().tolist() for tensor in found]

    return tensors


def test_tensors_of_nested_arguments_are_in_the_order_of_the_file(tf, match):
    spec = tf.TensorSpec([], tf.int32)
    nest = {"b": [spec, "literal"], "a": Pair(spec, (spec,))}
    assert match(nest, {"b": [3, "literal"], "a": Pair(1, (2,))}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("nest", "value", "said"),
    [
        ("spec", [1.0], "has shape (1,), not ()"),
        ("spec", None, "is None, not a tensor"),
        ([1, 2], [1], "has 1 items, not 2"),
        ({"a": 1}, {"b": 1}, "has the keys ['b'], not ['a']"),
        (Pair(1, 2), (1, 2), "not the namedtuple Pair(a, b)"),
        ([True, {"x": 3}], [True, {"x": 4}], "[1]['x'] is 4, not 3"),
    ],
)
def test_a_mismatch_says_where_and_why(tf, match, nest, value, said):
    from reference_impl.functions import patterns

    nest = tf.TensorSpec([], tf.float32) if nest == "spec" else nest
    with pytest.raises(patterns.Mismatch) as raised:
        match(nest, value)
    assert said in str(raised.value)


def test_python_numbers_are_tensors_only_where_they_are_converted(tf, match):
    from reference_impl.functions import patterns

    spec = tf.TensorSpec([], tf.float32)
    assert match(spec, 1.0) == [1.0]
    with pytest.raises(patterns.Mismatch, match="not a tensor"):
        match(spec, 1.0, convert=False)


def test_results_are_packed_like_their_specs(tf):
    from reference_impl.functions import patterns

    spec = tf.TensorSpec([])
    count, pack = patterns.packer({"b": spec, "a": (spec, None), "c": [Pair(spec, 5)]})
    assert count == 3
    assert pack(iter("xyz")) == {"a": ("x", None), "b": "y", "c": [Pair("z", 5)]}
