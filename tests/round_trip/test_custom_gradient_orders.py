"""Gradients of custom gradients: those that are custom gradients too, without end, and those that
cannot be differentiated.

A saved model is read in a new process: in the one that made it, the program's own gradients would
answer for missing ones.
"""

import json

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FMT-14")]
READER = """
import json, sys
import tensorflow as tf, reference_impl
load = {"tf2": tf.saved_model.load, "reference": reference_impl.load}[sys.argv[1]]
model = load(sys.argv[2])
def derivative(function):
    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)
    return differentiated
answers, function = [], model.f
for order in range(1 + int(sys.argv[3])):
    try:
        answers.append(float(function(tf.constant(2.0))))
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}")
    function = derivative(function)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def derivatives(reader, folder, orders):
    """f(2) and its derivatives as a new process computes them, an error as its text."""
    done = fresh_tensorflow.run(READER, reader, folder, orders)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def module(tf, function):
    root = tf.Module()
    root.v = tf.Variable(3.0)
    root.f = tf.function(
        lambda x: function(x, root.v),
        input_signature=[tf.TensorSpec([], tf.float32)],
        autograph=False,
    )
    return root


@pytest.mark.parametrize("reader", ["reference", "tf2"])
def test_a_sum_over_replicas_is_differentiated_as_often_as_the_file_says(tf, tmp_path, reader):
    def cubed(x, v):
        return tf.distribute.get_replica_context().all_reduce("SUM", x * x * x * v) * x  # 3 x^4

    root = module(tf, cubed)
    reference_impl.save(root, tmp_path / "m")
    assert derivatives(reader, tmp_path / "m", 3) == [48.0, 96.0, 144.0, 144.0]


def test_the_order_that_is_not_in_the_file_is_refused_in_every_generation(tf, tmp_path):
    def cubed(x, v):
        return tf.distribute.get_replica_context().all_reduce("SUM", x * x * x * v) * x

    root = module(tf, cubed)
    reference_impl.save(root, tmp_path / "0")
    reference_impl.save(reference_impl.load(tmp_path / "0"), tmp_path / "1")
    composed = tf.Module()
    composed.model = reference_impl.load(tmp_path / "1")
    composed.f = tf.function(lambda x: composed.model.f(x), input_signature=[tf.TensorSpec([])])
    reference_impl.save(composed, tmp_path / "2")
    tf.saved_model.save(reference_impl.load(tmp_path / "2"), str(tmp_path / "3"))
    assert derivatives("tf2", tmp_path / "3", 1) == [
        48.0,
        96.0,
    ]  # tf.saved_model.save keeps no gradient of a gradient
    for generation in range(3):
        *known, unknown = derivatives("reference", tmp_path / str(generation), 4)
        assert known == [48.0, 96.0, 144.0, 144.0]
        assert "no gradient here" in unknown and "up to order 3" in unknown
    *known, unknown = derivatives("tf2", tmp_path / "1", 4)
    assert known == [48.0, 96.0, 144.0, 144.0] and "No gradient defined" in unknown


def test_recompute_grad_is_differentiated_once_as_before_the_save(tf, tmp_path):
    """TensorFlow raises NotImplementedError for the second derivative."""
    recomputed = tf.recompute_grad(lambda x: x * x * x)
    reference_impl.save(module(tf, lambda x, v: recomputed(x) * v), tmp_path / "m")
    value, first, second = derivatives("reference", tmp_path / "m", 2)
    assert (value, first) == (24.0, 36.0)
    assert "no gradient here" in second and "recompute_grad tried to transpose" in second
    assert derivatives("tf2", tmp_path / "m", 1) == [24.0, 36.0]


def test_recompute_grad_over_variables_trains_after_a_load(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    layer = tf.recompute_grad(lambda x: tf.reduce_sum(x * root.v * root.v))
    root.f = tf.function(lambda x: layer(x) * 2.0, input_signature=[tf.TensorSpec([2])])
    reference_impl.save(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    for model in (root, loaded):
        with tf.GradientTape() as tape:
            y = model.f(tf.constant([3.0, 4.0]))
        assert tape.gradient(y, model.v).numpy().tolist() == [12.0, 32.0]


def squared(tf, inner):
    """x^2 whose gradient uses `inner`, a custom gradient, of the gradient that comes in and of
    2x.
    """

    @tf.custom_gradient
    def outer(x):
        doubled = 2.0 * x
        return x * x, lambda dy: inner(dy, doubled)

    return outer


def with_arguments(tf):
    @tf.custom_gradient
    def times(dy, factor):
        shifted = factor + 1.0
        return dy * factor, lambda du: (du * factor * 100.0, du * dy * shifted)

    return times


def with_tensors_of_the_forward_function(tf):
    def inner(dy, factor):
        @tf.custom_gradient
        def times(dz):
            return dz * factor, lambda du: du * factor * 100.0

        return times(dy)

    return inner


@pytest.mark.parametrize("reader", ["reference", "tf2"])
@pytest.mark.parametrize("inner", [with_arguments, with_tensors_of_the_forward_function])
def test_a_gradient_of_a_gradient_uses_tensors_of_both_functions(tf, tmp_path, reader, inner):
    root = module(tf, lambda x, v: squared(tf, inner(tf))(x) * x)
    x = tf.constant(
        2.0
    )  # executed eagerly: the traced function of TensorFlow cannot be differentiated twice
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.GradientTape() as within:
            within.watch(x)
            y = squared(tf, inner(tf))(x) * x
        first = within.gradient(y, x)
    expected = [float(y), float(first), float(tape.gradient(first, x))]
    reference_impl.save(root, tmp_path / "m")
    assert derivatives(reader, tmp_path / "m", 2) == pytest.approx(expected)


def test_a_training_step_with_recompute_grad_is_saved(tf, tmp_path):
    """`tf.saved_model.save` raises ValueError: the step holds an operation whose gradient raises
    NotImplementedError.
    """
    root = tf.Module()
    root.v = tf.Variable(1.0)
    layer = tf.recompute_grad(lambda x: x * root.v * root.v)

    @tf.function(input_signature=[tf.TensorSpec([])])
    def step(x):
        with tf.GradientTape() as tape:
            loss = layer(x)
        root.v.assign_sub(0.25 * tape.gradient(loss, root.v))
        return loss

    root.f = step
    reference_impl.save(root, tmp_path / "m")
    assert (
        derivatives("reference", tmp_path / "m", 0)
        == derivatives("tf2", tmp_path / "m", 0)
        == [2.0]
    )
    loaded = reference_impl.load(tmp_path / "m")
    loaded.f(tf.constant(2.0))
    assert loaded.v.numpy() == 0.0


def test_a_gradient_of_a_gradient_that_uses_tensors_out_of_its_reach_is_refused(tf, tmp_path):
    """TensorFlow raises for the second derivative too: the tensor is out of scope."""

    def inner(dy, doubled):
        @tf.custom_gradient
        def times(dz):
            return dz * 3.0, lambda du: du * doubled

        return times(dy)

    root = module(tf, lambda x, v: squared(tf, inner)(x) * x)
    reference_impl.save(root, tmp_path / "m")
    value, first, second = derivatives("reference", tmp_path / "m", 2)
    assert (value, first) == (8.0, 10.0) and "no gradient here" in second


def test_a_gradient_that_cannot_be_traced_is_still_an_error_where_it_is_the_first(tf, tmp_path):
    @tf.custom_gradient
    def broken(x):
        def gradient(dy):
            raise ArithmeticError("not today")

        return x * 2.0, gradient

    root = module(tf, lambda x, v: broken(x))
    with pytest.raises(reference_impl.errors.SaveError, match="not today"):
        reference_impl.save(root, tmp_path / "m")


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_a_training_step_with_an_optimizer_goes_on_after_a_load(tf, tmp_path, keras):
    package = pytest.importorskip(keras)
    if keras == "keras" and not hasattr(package, "Variable"):
        pytest.skip("the package keras is Keras 2 here, as beside TensorFlow 2.15 and older")
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0]) if keras == "tf_keras" else package.Variable([1.0, 2.0])
    root.value = root.w if keras == "tf_keras" else root.w.value
    root.optimizer = package.optimizers.Adam(0.1)
    root.optimizer.build([root.w])

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * root.value * root.value)
        root.optimizer.apply_gradients([(tape.gradient(loss, root.value), root.w)])
        return loss

    root.step = step
    if keras == "keras":
        root.state = [variable.value for variable in root.optimizer.variables]
    reference_impl.save(root, tmp_path / "m")
    readers = [reference_impl.load(tmp_path / "m"), tf.saved_model.load(str(tmp_path / "m"))]
    x = tf.constant([1.0, 3.0])
    losses = [[float(model.step(x)) for _ in range(3)] for model in (root, *readers)]
    assert losses[0][0] > losses[0][2] and losses[1] == losses[0] and losses[2] == losses[0]
    for model in readers:
        np.testing.assert_array_equal(model.value.numpy(), root.value.numpy())
