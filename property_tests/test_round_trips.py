"""What was saved comes back: generated models through either implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import implementations, world
from property_tests.implementations import BOTH
from property_tests.profiles import budget
from property_tests.strategies import functions as fn
from property_tests.strategies.models import differentiable, models
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.comparison import form_changes

pytestmark = pytest.mark.tensorflow

WRITERS = st.sampled_from(BOTH)


@budget(50)
@given(models(), WRITERS)
def test_a_loaded_model_answers_as_the_original(tf, model, writer):
    """Either implementation reads what either wrote."""
    with world.folder() as folder:
        check_answers(model.script(), folder, writer)


def check_answers(script, folder, writer):
    built = world.build(script, folder)
    implementations.save(writer, built.root, folder / "model", built.signatures)
    loaded = {reader: implementations.load(reader, folder / "model") for reader in BOTH}
    expected = built.answers(built.root)
    for reader, other in loaded.items():
        assert built.answers(other) == expected, f"{writer} -> {reader}"


@budget(10)
@given(models(literals=(*fn.LITERALS, *fn.SHAPES, *fn.SHAPES)), st.just(implementations.REFERENCE))
def test_a_model_with_shapes_as_arguments_answers_as_the_original(tf, model, writer):
    """Either implementation reads them; only `reference_impl` writes them (PY-07)."""
    with world.folder() as folder:
        check_answers(model.script(), folder, writer)


@budget(25)
@given(models(), WRITERS, WRITERS, WRITERS)
def test_the_second_generation_is_a_fixed_point_of_the_canonical_form(
    tf, model, first, reader, writer
):
    """From then on nothing changes.

    Where one implementation loads and the other saves, that is the third generation:

    signatures get wrappers of one and then of the other.
    """
    with world.folder() as folder:
        check_fixed_point(model.script(), folder, first, reader, writer)


def check_fixed_point(script, folder, first, reader, writer):
    built = world.build(script, folder)
    made = [implementations.save(first, built.root, folder / "0", built.signatures)]
    for number in (1, 2, 3):
        loaded = implementations.load(reader, made[-1])
        made.append(
            implementations.save(writer, loaded, folder / str(number), dict(loaded.signatures))
        )
    forms = [canonical(path) for path in made]
    fixed = 1 if reader == writer else 2
    for one, other in zip(forms[fixed:], forms[fixed + 1 :]):
        assert [
            str(change) for change in form_changes(one, other) if change.counts
        ] == [] and one.hash == other.hash


@budget(25)
@given(differentiable(), WRITERS)
def test_a_loaded_model_has_the_gradients_of_the_original(tf, model, writer):
    """Of every answer with respect to every trainable float variable, custom gradients included."""
    with world.folder() as folder:
        check_gradients(model.script(), folder, writer)


def check_gradients(script, folder, writer):
    import tensorflow as tf

    built = world.build(script, folder)
    implementations.save(writer, built.root, folder / "model", built.signatures)
    loaded = {reader: implementations.load(reader, folder / "model") for reader in BOTH}

    def gradients(model):
        variables = [
            variable
            for variable in (built.find(model, path) for path in built.variables)
            if variable.trainable
        ]
        floats = [variable for variable in variables if variable.dtype in (tf.float32, tf.float64)]
        found = []
        for request in sorted(
            built.requests, key=lambda request: not request[0].endswith("_concrete")
        ):  # finding 2
            with tf.GradientTape() as tape:
                answer = built.names["weight"](built.ask(model, request))
            found.append([world.plain(item) for item in tape.gradient(answer, floats)])
        return found

    expected = gradients(built.root)
    for reader, other in loaded.items():
        assert gradients(other) == expected, f"{writer} -> {reader}"


CHECKS = {
    "test_a_loaded_model_answers_as_the_original": check_answers,
    "test_a_model_with_shapes_as_arguments_answers_as_the_original": check_answers,
    "test_the_second_generation_is_a_fixed_point_of_the_canonical_form": check_fixed_point,
    "test_a_loaded_model_has_the_gradients_of_the_original": check_gradients,
}
