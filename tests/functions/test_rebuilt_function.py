"""A loaded function as a concrete function of TensorFlow: made on demand, once, openly."""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def trace(tf, reloaded):
    root = tf.Module()
    root.v = tf.Variable([2.0, 3.0])
    spec = tf.TensorSpec([None, 2], name="x")
    root.f = tf.function(lambda x: {"y": x * root.v}, input_signature=[spec])
    (found,) = reloaded(root).f.concrete_functions
    return found


@pytest.fixture
def built(monkeypatch):
    """How often a function was rebuilt."""
    from reference_impl.functions import registered_function

    count, rebuilt = [], registered_function.RebuiltFunction
    monkeypatch.setattr(
        registered_function, "RebuiltFunction", lambda given: count.append(1) or rebuilt(given)
    )
    return count


def test_what_tracing_gives_to_a_concrete_function_is_read_from_the_rebuilt_one(tf, trace):
    """A release of TensorFlow may keep more of a graph; then `RestoredConcreteFunction` needs it
    too.
    """
    own = {"_arg_keywords", "_num_positional_args"}  # which a load sets
    concrete = trace.rebuilt().concrete
    assert type(concrete) is not type(trace)
    for name in vars(concrete).keys() - own:
        assert getattr(trace, name) is getattr(concrete, name), name


def test_what_is_set_there_is_set_on_the_rebuilt_one(trace):
    captures = list(trace.captured_inputs)
    trace.set_external_captures(captures)
    assert trace.rebuilt().concrete._captured_inputs is captures


@pytest.mark.parametrize(
    "name", ["graph", "inputs", "outputs", "name", "function_def", "function_type"]
)
def test_a_property_of_the_graph_builds_it_once(tf, trace, built, name):
    if not hasattr(type(trace), name):
        pytest.skip("a release without it")
    before = type(trace)
    first = getattr(trace, name)
    assert first is getattr(trace, name) or first == getattr(trace, name)
    assert built == [1] and type(trace) is before


def test_other_attributes_build_nothing(trace, built):
    for name in ("shape", "handle", "_shared_name", "trainable", "structured_outputs", "variables"):
        getattr(trace, name, None)
    assert trace.captured_inputs and not built


def test_the_graph_has_the_names_of_the_file(trace):
    assert next(tensor.name for tensor in trace.inputs) == "x:0"
    assert trace.outputs[0].shape.as_list() == [None, 2]
    assert len(trace.captured_inputs) == len(trace.graph.external_captures) == 1


def test_calls_by_name_and_through_the_graph_agree(tf, trace):
    x = tf.constant([[1.0, 2.0]])
    by_name = trace(x)["y"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        through = trace(x)["y"]
    np.testing.assert_array_equal(by_name, through)
    np.testing.assert_array_equal(tape.gradient(through, x), [[2.0, 3.0]])
    np.testing.assert_array_equal(trace(x)["y"], by_name)


def test_a_copy_shares_the_rebuilt_function(trace):
    rebuilt = trace.rebuilt()
    assert copy.copy(trace).rebuilt() is rebuilt
