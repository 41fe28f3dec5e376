"""Objects that `tf.is_tensor` takes for tensors, and that have variables of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def tensor_like(tf):
    """A class as those of TFP and GPflow: the exponential of its variable, wherever a tensor can
    stand.
    """

    class Positive(tf.Module):
        is_tensor_like = True
        dtype, shape = tf.float32, tf.TensorShape([])

        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0, name="v")

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.numpy(), dtype)

        def numpy(self):
            return tf.exp(self.v).numpy()

    tf.register_tensor_conversion_function(
        Positive, lambda value, dtype=None, name=None, as_ref=False: tf.exp(value.v)
    )
    assert tf.is_tensor(Positive())
    return Positive


def function(tf, body):
    return tf.function(body, input_signature=[tf.TensorSpec([], tf.float32, name="x")])


def attribute(tf, made):
    root = tf.Module()
    root.t = made()
    root.f = function(tf, lambda x: x * root.t.v)
    return root, lambda loaded: loaded.t


def as_tensor(tf, made):
    root = tf.Module()
    root.t = made()
    root.f = function(tf, lambda x: x * root.t / tf.exp(root.t.v) * root.t.v)
    return root, lambda loaded: loaded.t


def in_a_list(tf, made):
    root = tf.Module()
    root.parts = [made(), {"t": made()}]
    root.f = function(tf, lambda x: x * root.parts[1]["t"].v)
    return root, lambda loaded: loaded.parts[1]["t"]


def as_argument(tf, made):
    root = tf.Module()
    root.t = made()
    root.f = tf.function(lambda x: x * root.t.v)
    assert root.f(root.t).numpy() > 14.0  # exp(2) * 2
    return root, lambda loaded: loaded.t


def in_a_gradient(tf, made):
    root = tf.Module()
    root.t = made()

    @tf.custom_gradient
    def scaled(x):
        return x * root.t.v, lambda dy, variables=None: (
            dy * root.t.v,
            [tf.zeros([])] * len(variables or ()),
        )

    root.f = function(tf, scaled)
    return root, lambda loaded: loaded.t


CASES = (attribute, as_tensor, in_a_list, as_argument, in_a_gradient)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("writer", ["ours", "theirs", "saved again"])
def test_its_variables_are_saved_and_restored(tf, tensor_like, tmp_path, case, writer):
    root, find = case(tf, tensor_like)
    path = tmp_path / "m"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if writer == "ours":
            reference_impl.save(root, path)
        else:
            tf.saved_model.save(root, str(path))
        if writer == "saved again":
            reference_impl.save(reference_impl.load(path), tmp_path / "again")
            path = tmp_path / "again"
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(path))
        assert loaded.f(tf.constant(3.0)).numpy() == pytest.approx(6.0, rel=1e-6)
        assert find(loaded).v.numpy() == 2.0 and not tf.is_tensor(find(loaded))
        find(loaded).v.assign(5.0)
        assert loaded.f(tf.constant(3.0)).numpy() == pytest.approx(15.0, rel=1e-6)


def test_one_that_is_not_tracked_is_reported_with_its_variable(tf, tensor_like, tmp_path):
    root = tf.Module()
    root.held = {tensor_like()}
    with pytest.raises(errors.SaveError, match=r"root\.held\[0\]\.v \(a variable\)"):
        reference_impl.save(root, tmp_path / "m")


def test_one_that_is_no_trackable_is_reported_by_its_class(tf, tmp_path):
    class Numbers:
        is_tensor_like = True
        dtype, shape = "any", ()  # whatever it has, it is no tensor

        def __array__(self, dtype=None, copy=None):
            return np.float32(3.0)

    root = tf.Module()
    root.numbers = Numbers()
    with pytest.raises(errors.SaveError, match=r"root\.numbers \(a Numbers\)"):
        reference_impl.save(root, tmp_path / "m")


def test_a_transformed_variable_of_TFP(tf, tmp_path):
    tfp = pytest.importorskip("tensorflow_probability")
    root = tf.Module()
    root.scale = tfp.util.TransformedVariable(3.0, tfp.bijectors.Exp())
    root.f = function(tf, lambda x: x * root.scale)
    reference_impl.save(root, tmp_path / "m")
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "m"))
        assert loaded.f(2.0).numpy() == pytest.approx(6.0, rel=1e-6)
        loaded.scale._pretransformed_input.assign(0.0)
        assert loaded.f(2.0).numpy() == 2.0
