"""The functions that compute the custom gradients of a model: they use its variables and tables."""

from __future__ import annotations

import gc
import weakref

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def model(tf, tmp_path):
    """A model whose gradient reads a variable and a table."""
    root = tf.Module()
    root.factor = tf.Variable(10.0)
    keys, values = tf.constant(["a"]), tf.constant([5.0])
    root.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.0)

    @tf.custom_gradient
    def strange(x):
        def gradient(dy, variables=None):
            found = dy * root.factor + root.table.lookup(tf.constant("a"))
            return found, [None] * len(variables or ())

        return tf.identity(x), gradient

    root.f = tf.function(lambda x: strange(x) * 1.0, input_signature=[tf.TensorSpec([])])
    reference_impl.save(root, tmp_path / "m")
    return tmp_path / "m"


def _gradient(tf, model):
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model.f(x)
    return tape.gradient(y, x).numpy()


def test_a_gradient_reads_the_state_of_the_loaded_model(tf, model):
    loaded = reference_impl.load(model)
    assert _gradient(tf, loaded) == 15.0
    loaded.factor.assign(20.0)
    assert _gradient(tf, loaded) == 25.0


def test_gradients_keep_no_table_alive(model):
    loaded = reference_impl.load(model)
    table = weakref.ref(loaded.table)
    del loaded
    gc.collect()
    assert table() is None
