"""A function and its captures: what it keeps alive, and what it lists."""

from __future__ import annotations

import gc
import weakref

import pytest

from reference_impl.errors import UnsupportedModelError

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def function(tf, reloaded):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.w = tf.Variable(3.0, trainable=False)
    root.f = tf.function(lambda x: x * root.v + root.w, input_signature=[tf.TensorSpec([])])
    return reloaded(root).f


def test_a_function_keeps_its_variables(tf, function):
    gc.collect()  # the root is gone
    assert function(tf.constant(5.0)).numpy() == 13.0


def test_variables_are_the_captured_ones(function):
    (trace,) = function.concrete_functions
    assert sorted(variable.numpy() for variable in trace.variables) == [2.0, 3.0]
    assert [variable.numpy() for variable in trace.trainable_variables] == [2.0]


def test_a_function_of_a_resource_does_not_keep_it(tf, reloaded):
    keys, values = tf.constant(["a"]), tf.constant([1])
    root = tf.Module()
    root.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    loaded = reloaded(root)
    initialize, gone = loaded.table.functions["_initialize"], weakref.ref(loaded.table)
    del loaded
    gc.collect()
    assert gone() is None
    with pytest.raises(UnsupportedModelError, match="resource"):
        initialize()


def test_a_signature_that_is_not_known_here_concerns_only_its_function(tf):
    from reference_impl.format import schema
    from reference_impl.functions.bound_function import BoundFunction
    from reference_impl.functions.library import FunctionLibrary

    asked = []
    function = BoundFunction(
        FunctionLibrary(schema.FunctionDefLibrary()), "f", lambda: asked.append(1) or (((), {}), 1)
    )
    assert not asked
    assert function.structured == function.structured == (((), {}), 1) and asked == [1]
