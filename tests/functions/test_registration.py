"""A loaded function costs only what is used of it."""

from __future__ import annotations

import numpy as np
import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def model(tf, tmp_path):
    root = tf.Module()
    root.w = tf.Variable([2.0, 3.0])
    positive = lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * root.w, lambda: x)  # noqa: E731
    root.f = tf.function(positive, input_signature=[tf.TensorSpec([None, 2], name="x")])
    tf.saved_model.save(root, str(tmp_path / "model"))
    return tmp_path / "model"


def test_the_runtime_gets_functions_without_noted_shapes_as_from_tensorflow(tf, model, tmp_path):
    from reference_impl import tensorflow_api as api

    loaded = reference_impl.load(model)
    np.testing.assert_array_equal(loaded.f([[1.0, 1.0]]), [[2.0, 3.0]])
    (trace,) = loaded.f.concrete_functions
    names = [trace.library.live_name(name) for name in trace.library.closure(trace.saved_name)]
    registered = list(map(api.function_definition, names))
    assert len(registered) == 3  # the function and its branches
    assert not any(
        "_output_shapes" in node.attr for function in registered for node in function.node_def
    )
    assert trace.outputs[0].shape.as_list() == [None, 2]  # of the graph, which is made on demand
    reference_impl.save(loaded, tmp_path / "again")
    again = reference_impl.load(tmp_path / "again").f.concrete_functions[0]
    shapes = [
        node
        for node in again.library.get(again.saved_name).node_def
        if "_output_shapes" in node.attr
    ]
    assert shapes  # other readers need them


def test_a_save_does_not_make_a_tf_function_of_a_loaded_function(model, tmp_path):
    loaded = reference_impl.load(model)
    reference_impl.save(loaded, tmp_path / "again")
    assert not loaded.f.has_python_function()
    assert loaded.f.python_function is not None and loaded.f.has_python_function()
