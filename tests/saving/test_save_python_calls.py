"""`reference_impl.save` of functions that call Python code of the process."""

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FMT-04")]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def numpy_function(tf, x):
    return tf.ensure_shape(tf.numpy_function(lambda a: a * np.float32(2), [x], tf.float32), [None])


def stateless_numpy_function(tf, x):
    return tf.ensure_shape(
        tf.numpy_function(lambda a: a * np.float32(2), [x], tf.float32, stateful=False), [None]
    )


def py_function(tf, x):
    return tf.ensure_shape(tf.py_function(lambda a: a * 2.0, [x], tf.float32), [None])


def in_a_branch(tf, x):
    return tf.cond(tf.size(x) > 0, lambda: py_function(tf, x), lambda: x)


def generator(tf, x):
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([1.0, 2.0]), output_signature=tf.TensorSpec([], tf.float32)
    )
    return x * dataset.reduce(0.0, lambda total, item: total + item)


CALLS = {
    numpy_function: "PyFunc",
    stateless_numpy_function: "PyFuncStateless",
    py_function: "EagerPyFunc",
    in_a_branch: "EagerPyFunc",
    generator: "PyFunc",
}


def module(tf, call):
    root = tf.Module()
    root.inner = tf.Module()
    root.inner.f = tf.function(
        lambda x: call(tf, x), input_signature=[tf.TensorSpec([None])], autograph=False
    )
    return root


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_python_are_refused_by_name(tf, tmp_path, call):
    with pytest.raises(
        errors.SaveError, match=rf"root\.inner\.f: .*\({CALLS[call]}\).*strict=False"
    ) as caught:
        reference_impl.save(module(tf, call), tmp_path / "m")
    assert caught.value.node == "root.inner.f" and not (tmp_path / "m").exists()


@pytest.mark.parametrize("call", CALLS)
def test_without_strict_they_are_kept_for_this_process_with_a_warning(tf, tmp_path, call):
    root = module(tf, call)
    with pytest.warns(UserWarning, match=r"root\.inner\.f"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    x = tf.constant([1.0])
    np.testing.assert_array_equal(reference_impl.load(tmp_path / "m").inner.f(x), root.inner.f(x))
    script = (
        "import sys, tensorflow as tf, reference_impl;"
        " reference_impl.load(sys.argv[1]).inner.f(tf.constant([1.0]))"
    )
    done = fresh_tensorflow.run(script, tmp_path / "m")
    assert done.returncode == 1 and "callback" in done.stderr


def test_a_loaded_model_with_such_calls_is_saved_as_it_is(tf, tmp_path, recwarn):
    tf.saved_model.save(module(tf, py_function), str(tmp_path / "0"))
    recwarn.clear()
    for generation in range(2):
        reference_impl.save(
            reference_impl.load(tmp_path / str(generation)), tmp_path / str(generation + 1)
        )
    assert not [item for item in recwarn if "Python" in str(item.message)]


def test_a_call_in_a_signature_and_in_a_gradient(tf, tmp_path):
    @tf.custom_gradient
    def odd(x):
        return x * 2.0, lambda dy: py_function(tf, dy)

    root = tf.Module()
    root.f = tf.function(lambda x: {"y": odd(x)}, input_signature=[tf.TensorSpec([None], name="x")])
    with pytest.raises(errors.SaveError, match="EagerPyFunc"):
        reference_impl.save(root, tmp_path / "m", signatures=root.f)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    reference_impl.save(root, tmp_path / "m", signatures=root.f, options=options)
