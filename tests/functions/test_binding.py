"""Calls in their canonical form: which argument is which."""

from __future__ import annotations

import pytest

from reference_impl.errors import BindingError

pytestmark = pytest.mark.tensorflow


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
