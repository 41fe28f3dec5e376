"""`reference_impl.load` of models of TensorFlow 2: gradients, and calls from functions that are
traced.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from made_models import save

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("training", [False, True], ids=["if", "while"])
def test_GOAL_02_gradients_through_nested_calls_and_control_flow(tf, original, loaded, training):
    results = []
    for model in (original[0], loaded):
        x = tf.constant([[1.0, 2.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x, training)
        results.append([g.numpy() for g in tape.gradient(y, [x, model.dense.w, model.bias])])
    for got, expected in zip(results[1], results[0]):
        np.testing.assert_array_equal(got, expected)
    assert {v.ref() for v in tape.watched_variables()} == {loaded.dense.w.ref(), loaded.bias.ref()}


def test_GOAL_03_gradients_through_a_signature_and_training(tf, loaded):
    serve = loaded.signatures["serve"]
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(
                serve(x=tf.constant([[1.0, 2.0]]), scale=tf.constant(1.0))["plain"] ** 2
            )
        for variable, gradient in zip(
            loaded.trainable_variables, tape.gradient(loss, loaded.trainable_variables)
        ):
            variable.assign_sub(1e-5 * gradient)
        losses.append(loss.numpy())
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("training", [False, True], ids=["if", "while"])
def test_second_order_gradients(tf, original, loaded, training):
    results = []
    for model in (original[0], loaded):
        x = tf.constant([[1.0, 2.0]])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(model(x, training) ** 2)
            first = inner.gradient(y, x)
        results.append([gradient.numpy() for gradient in outer.gradient(first, [x, model.dense.w])])
    assert len(results[1]) == len(results[0]) == 2
    for got, expected in zip(results[1], results[0]):
        np.testing.assert_allclose(
            got, expected, rtol=1e-6
        )  # sums of products in an order that optimisers choose


def test_forward_mode(tf, loaded):
    x = tf.constant([[1.0, 2.0]])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = loaded(x)
    w = loaded.dense.w.numpy()
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), np.ones([1, 2]) @ w @ w, rtol=1e-6)


def test_NG_03_calls_while_another_function_is_traced(tf, loaded):
    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            y = loaded(x, True) + loaded.signatures["serve"](x=x, scale=tf.constant(2.0))["plain"]
        return y, tape.gradient(y, loaded.dense.w)

    x = tf.constant([[1.0, 2.0]])
    y, gradient = outer(x)
    with tf.GradientTape() as tape:
        expected = loaded(x, True) + loaded.signatures["serve"](x=x, scale=2.0)["plain"]
    np.testing.assert_array_equal(y.numpy(), expected.numpy())
    np.testing.assert_array_equal(gradient.numpy(), tape.gradient(expected, loaded.dense.w).numpy())
    assert loaded.bias.ref() in {v.ref() for v in outer.get_concrete_function(x).variables}


def test_AutoGraph_does_not_convert_loaded_functions(tf, original, monkeypatch):
    from reference_impl.functions import function_settings

    converted, build = [], function_settings.as_tf_function

    def record(*args):
        converted.extend(
            frame.function for frame in inspect.stack() if "__autograph_generated" in frame.filename
        )
        return build(*args)

    monkeypatch.setattr(function_settings, "as_tf_function", record)
    loaded = reference_impl.load(original[1])

    @tf.function
    def outer(x):
        y = loaded.signatures["serve"](x=x, scale=tf.constant(1.0))["plain"]
        return loaded(x) + loaded.dense.multiply(x) + y

    outer(tf.ones([1, 2]))
    assert set(converted) <= {"tf__outer", "tf__wrapper"}  # the latter is what says not to go on


def test_FMT_14_custom_gradients_with_captures(tf, tmp_path):
    root = tf.Module()
    root.factor = tf.Variable(100.0)

    @tf.custom_gradient
    def strange(x):
        y = tf.sin(x)

        def gradient(dy, variables=None):
            return dy * x * y * root.factor, [tf.zeros([])] * len(variables or ())

        return y, gradient

    root.inner = tf.function(lambda x: strange(x) * 3.0, input_signature=[tf.TensorSpec([])])
    root.f = tf.function(
        lambda x: strange(x) * 2.0 + root.inner(x),
        input_signature=[tf.TensorSpec([], name="Big/Name")],
    )
    results = []
    for model in (root, reference_impl.load(save(tf, tmp_path, root))):
        x = tf.constant(0.5)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = model.f(x)
            first = inner.gradient(y, x)
        results.append(
            [
                y.numpy(),
                first.numpy(),
                *(g.numpy() for g in outer.gradient(first, [x, model.factor])),
            ]
        )
    np.testing.assert_allclose(
        results[0], results[1], rtol=1e-6
    )  # the order of the products differs


def test_graph_attributes_of_a_concrete_function(tf, loaded):
    concrete = loaded.serve.concrete_functions[0]
    assert [t.name for t in concrete.inputs][:2] == ["x:0", "scale:0"]
    assert len(concrete.graph.external_captures) == len(concrete.captured_inputs)
    assert (
        concrete.function_def.signature.name == concrete.name.decode()
        if isinstance(concrete.name, bytes)
        else concrete.name
    )
    assert sorted(concrete.structured_outputs) == ["also", "plain", "scaled"]
