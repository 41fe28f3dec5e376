"""Functions with branches, loops and datasets in a graph that is being traced."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def _in_graph(tf, function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda x: function(x))(x)
    return y.numpy(), tape.gradient(y, x).numpy()


def test_variables_pass_through_branches_and_loops(tf, reloaded):
    root = tf.Module()
    root.v = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([])])
    def f(x):
        y = tf.cond(x > 0.0, lambda: x * root.v, lambda: x)
        branches = [lambda: y + 1.0, lambda: y * root.v]
        y = tf.switch_case(tf.cast(x, tf.int32) % 2, branches)
        return tf.while_loop(lambda y: y < 50.0, lambda y: (y * root.v,), (y,))[0]

    root.f = f
    loaded = reloaded(root)
    for number in (1.0, 2.0):
        x = tf.constant(number)
        assert _in_graph(tf, loaded.f, x) == _in_graph(tf, root.f, x)
        assert loaded.f(x).numpy() == root.f(x).numpy()


def test_the_predicate_of_take_while_takes_elements(tf, reloaded):
    """It was rebuilt for the inputs of the op, a dataset, since "While" is in the op's name."""
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([])])
    def f(x):
        numbers = tf.data.Dataset.range(5).map(lambda i: tf.cast(i, tf.float32))
        return numbers.take_while(lambda i: i < 3.0).reduce(x, lambda a, b: a + b)

    root.f = f
    loaded = reloaded(root)
    assert tf.function(lambda x: loaded.f(x))(tf.constant(1.0)).numpy() == 4.0
