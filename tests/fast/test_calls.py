"""`reference_impl.fast.calls` against the plain code of a call: the same answers, the same errors."""

from __future__ import annotations

import re

import numpy as np
import pytest

import reference_impl
from reference_impl import errors

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

X = tf.constant([[1.0, 2.0, 3.0, 4.0]])
N = tf.constant(3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with a signature of two inputs, and one that changes a variable."""
    root = tf.Module()
    root.weight = tf.Variable(tf.ones([4, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([], tf.int32)])
    def scaled(x, n):
        product = tf.matmul(x, root.weight) * tf.cast(n, tf.float32)
        return {"product": product, "double": 2 * n}

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def grow(by):
        grown = root.weight.assign_add(tf.reduce_sum(by) * tf.ones([4, 2]))
        return {"first": grown[0, 0]}

    root.scaled, root.grow = scaled, grow
    path = tmp_path_factory.mktemp("calls") / "model"
    tf.saved_model.save(root, str(path), {"serving_default": scaled, "grow": grow})
    return path


def load(path, fast):
    with tf.device("CPU"):
        return reference_impl.load(path, options=reference_impl.LoadOptions(fast=fast))


def taken_fast(function):
    """Count the calls whose arguments the fast code takes."""
    counts, call = [], function._by_name
    assert call is not None

    def take(args, kwargs):
        found = call.take(args, kwargs)
        counts.append(found is not None)
        return found

    function._by_name = call._replace(take=take)
    return counts


def outcome(function, *args, **kwargs):
    """Return the answer of a call as lists, or its error."""
    try:
        answer = function(*args, **kwargs)
    except Exception as error:
        return type(error), re.sub(r"__load\d+", "", str(error))  # numbers of the load
    return tf.nest.map_structure(lambda tensor: tensor.numpy().tolist(), answer)


CALLS = {
    "tensors": ((), {"x": X, "n": N}, True),
    "another size": ((), {"x": tf.ones([5, 4]), "n": N}, True),
    "no rows": ((), {"x": tf.ones([0, 4]), "n": N}, True),
    "an array": ((), {"x": X.numpy(), "n": N}, False),
    "numbers": ((), {"x": [[1, 2, 3, 4]], "n": 3}, False),
    "a variable": ((), {"x": tf.Variable(X), "n": N}, False),
    "another dtype": ((), {"x": tf.cast(X, tf.float64), "n": N}, False),
    "a dtype of the same kind": ((), {"x": X, "n": tf.constant(3, tf.int64)}, False),
    "another rank": ((), {"x": X[0], "n": N}, False),
    "another shape": ((), {"x": tf.ones([2, 3]), "n": N}, False),
    "missing": ((), {"x": X}, False),
    "unknown": ((), {"x": X, "n": N, "more": N}, False),
    "another name": ((), {"x": X, "m": N}, False),
    "positional": ((X, N), {}, False),
    "none": ((), {"x": X, "n": None}, False),
    "nothing": ((), {}, False),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_same_outcome(model, name):
    args, kwargs, is_fast = CALLS[name]
    fast, plain = (load(model, fast).signatures["serving_default"] for fast in (True, False))
    fast(x=X, n=N)
    plain(x=X, n=N)
    assert plain._by_name.take is None
    counts = taken_fast(fast)
    for _ in range(2):  # a shape is remembered
        assert outcome(fast, *args, **kwargs) == outcome(plain, *args, **kwargs)
    assert counts == [is_fast] * 2


def test_positional_arguments_of_a_concrete_function(model):
    fast, plain = (load(model, fast).scaled.concrete_functions[0] for fast in (True, False))
    fast(X, N)
    counts = taken_fast(fast)
    calls = [((X, N), {}), ((X,), {"n": N}), ((N, X), {}), ((X,), {})]
    assert [outcome(fast, *call, **named) for call, named in calls] == [
        outcome(plain, *call, **named) for call, named in calls
    ]
    assert counts == [True, False, False, False]


def test_a_shape_that_does_not_fit_is_compared_each_time(model):
    function = load(model, True).signatures["serving_default"]
    function(x=X, n=N)
    for _ in range(100):
        assert isinstance(outcome(function, x=tf.ones([2, 3]), n=N), tuple)
    sizes = [outcome(function, x=tf.ones([rows, 4]), n=N)["double"] for rows in range(100)]
    assert sizes == [6] * 100


def test_gradients_and_graphs_take_the_plain_way(model):
    loaded = load(model, True)
    function = loaded.signatures["serving_default"]
    function(x=X, n=N)
    counts = taken_fast(function)
    with tf.GradientTape() as tape:
        tape.watch(X)
        product = function(x=X, n=N)["product"]
    assert tape.gradient(product, X).numpy().tolist() == [[6.0] * 4]

    traced = tf.function(lambda x: function(x=x, n=N)["product"])
    assert traced(X).numpy().tolist() == product.numpy().tolist()
    assert counts == []


def test_autograph_converts_no_code_of_a_call(model):
    function = load(model, True).signatures["serving_default"]
    expected = function(x=X + 1.0, n=N)["product"].numpy().tolist()

    @tf.function
    def outer(x, **given):
        if tf.reduce_sum(x) > 0:  # so that AutoGraph has work
            x = x + 1.0
        return function(x=x, **given)["product"]

    assert outer(X, n=N).numpy().tolist() == expected
    with pytest.raises(errors.BindingError) as found:
        tf.autograph.to_graph(outer.python_function)(X)
    frames = [entry.name for entry in found.traceback if entry.name.startswith("tf__")]
    assert frames == ["tf__outer"]


def test_a_variable_that_was_assigned_counts(model):
    loaded = load(model, True)
    function, grow = (loaded.signatures[key] for key in ("serving_default", "grow"))
    assert function(x=X, n=N)["product"].numpy().tolist() == [[30.0, 30.0]]
    for _ in range(3):
        grow(by=tf.constant([1.0, 0.0]))
    assert function(x=X, n=N)["product"].numpy().tolist() == [[120.0, 120.0]]
    assert np.all(loaded.weight.numpy() == 4.0)


def test_threads_share_a_function(model):
    from concurrent.futures import ThreadPoolExecutor

    function = load(model, True).signatures["serving_default"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: outcome(function, x=X, n=tf.constant(n)), range(64)))
    assert [answer["double"] for answer in answers] == [2 * n for n in range(64)]
