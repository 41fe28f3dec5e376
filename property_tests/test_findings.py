"""Bugs of shipped TensorFlow that generated models found: docs/evidence/property_findings.md.

Each is here as it is today.
"""

from __future__ import annotations

import pytest

from property_tests import implementations, world
from property_tests.implementations import REFERENCE, TENSORFLOW

pytestmark = pytest.mark.tensorflow


def test_traces_that_differ_in_the_shape_of_a_sparse_argument_are_one_to_tf_saved_model(tf):
    """Finding 1, seen in 2.12 to 2.21: `tf.saved_model.save` keeps the first without a word,
    `reference_impl.save` all.
    """
    root = tf.Module()
    root.f = tf.function(lambda x: tf.sparse.reduce_sum(x))
    for rows in (1, 2):
        root.f(tf.sparse.from_dense(tf.ones([rows, 1])))
    with world.folder() as folder:
        for writer, kept in ((TENSORFLOW, 1), (REFERENCE, 2)):
            path = implementations.save(writer, root, folder / writer)
            assert len(implementations.load(TENSORFLOW, path).f.concrete_functions) == kept, writer
        loaded = implementations.load(TENSORFLOW, folder / REFERENCE)
        assert loaded.f(tf.sparse.from_dense(tf.ones([2, 1]))).numpy() == 2.0


def test_a_trace_has_no_gradient_for_tensorflow_behind_the_gradient_of_its_function(tf):
    """Finding 2, seen in 2.12 to 2.21: `tf.saved_model.load` makes a trace of a loop that cannot be
    differentiated twice.
    """
    root = tf.Module()
    root.v = tf.Variable(2.0)

    def power(x):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * root.v), (0, x))[1]

    root.f = tf.function(power, input_signature=[tf.TensorSpec([], tf.float32)], autograph=False)

    def gradient(model, function):
        with tf.GradientTape() as tape:
            answer = function(tf.constant(1.0))
        return tape.gradient(answer, model.v).numpy()

    with world.folder() as folder:
        path = implementations.save(TENSORFLOW, root, folder / "model")
        loaded = implementations.load(REFERENCE, path)
        assert [
            gradient(loaded, function) for function in (loaded.f, loaded.f.concrete_functions[0])
        ] == [4.0, 4.0]
        loaded = implementations.load(TENSORFLOW, path)
        assert gradient(loaded, loaded.f) == 4.0
        with pytest.raises(ValueError, match="of a variable without handle data"):
            gradient(loaded, loaded.f.concrete_functions[0])


def test_a_loaded_function_does_not_take_the_loaded_variable_with_tensorflow(tf):
    """Finding 3, seen in 2.12 to 2.21: `tf.saved_model.load` finds no trace for it, but for a new
    variable.
    """
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(lambda x: x + 1.0)
    root.f(root.v)
    with world.folder() as folder:
        path = implementations.save(TENSORFLOW, root, folder / "model")
        loaded = implementations.load(REFERENCE, path)
        assert loaded.f(loaded.v).numpy() == 3.0
        loaded = implementations.load(TENSORFLOW, path)
        assert loaded.f.concrete_functions[0](loaded.v).numpy() == 3.0
        with pytest.raises(ValueError, match="Could not find matching concrete function"):
            loaded.f(loaded.v)
        assert loaded.f(tf.Variable(4.0)).numpy() == 5.0
