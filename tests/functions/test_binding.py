"""Calls in their canonical form: which argument is which."""

from __future__ import annotations

import inspect

import pytest

from reference_impl.errors import BindingError, SavedModelError
from reference_impl.format import schema

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

from reference_impl.functions import binding  # noqa: E402  # imports TensorFlow


@pytest.fixture
def function(tf, reloaded):
    root = tf.Module()

    @tf.function
    def f(x, scale=2.0, *, training=False):
        return x * scale + (1.0 if training else 0.0)

    f.get_concrete_function(tf.TensorSpec([]))
    f.get_concrete_function(tf.TensorSpec([]), training=True)
    root.f = f
    return reloaded(root).f


def test_forms_of_one_call_take_one_trace(tf, function):
    x = tf.constant(3.0)
    forms = [function(x), function(x=x), function(x, 2.0), function(x, scale=2.0, training=False)]
    assert [form.numpy() for form in forms] == [6.0] * 4
    assert function(x, training=True).numpy() == 7.0


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1.0, 2.0, True), {}, "too many positional arguments"),
        ((1.0,), {"x": 1.0}, "multiple values for argument 'x'"),
        ((1.0,), {"trainig": True}, "unexpected keyword argument 'trainig'"),
    ],
)
def test_a_call_that_does_not_bind_names_the_argument(function, args, kwargs, said):
    with pytest.raises(BindingError, match=said):
        function(*args, **kwargs)


def test_canonical_form_has_the_defaults(function):
    assert function.binder.canonical((1,), {}) == ((1, 2.0), {"training": False})
    assert function.binder.without_defaults((1, 2.0)) == (1,)


def test_functions_with_equal_parameters_share_a_signature_but_no_defaults(tf, reloaded):
    root = tf.Module()
    for number in range(2):
        plain = tf.function(lambda x, y: x + y)
        plain.get_concrete_function(tf.TensorSpec([]), tf.TensorSpec([]))
        setattr(root, f"plain_{number}", plain)
        scaled = tf.function(lambda x, by=[2.0]: x * by[0])
        scaled.get_concrete_function(tf.TensorSpec([]))
        setattr(root, f"scaled_{number}", scaled)
    made = reloaded(root)
    assert made.plain_0.binder.signature is made.plain_1.binder.signature
    assert made.plain_0.binder is not made.plain_1.binder
    ours, other = made.scaled_0.binder.signature, made.scaled_1.binder.signature
    assert ours == other
    assert ours.parameters["by"].default is not other.parameters["by"].default


def test_a_parameter_that_cannot_be_stored_is_an_error_with_the_path_each_time():
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameter = inspect.Parameter("x", kind)
    parameter._name = "\ud800"
    signature = inspect.Signature([parameter], __validate_parameters__=False)
    for path in ("root.f", "root.g"):
        with pytest.raises(SavedModelError, match=path):
            binding.write(schema.FunctionSpec(), signature, None, None, path)
