"""Models of TF 1: what a session wrote answers, differentiates and is saved again as in that
session.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject

import reference_impl
from property_tests import world
from property_tests.profiles import budget
from property_tests.strategies.graphs import graphs

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True, scope="module")
def control_flow(tf):
    """Scripts choose the control flow of TF 1 or 2; afterwards it is as it was."""
    before = tf.compat.v1.control_flow_v2_enabled()
    yield
    (tf.compat.v1.enable_control_flow_v2 if before else tf.compat.v1.disable_control_flow_v2)()


@budget(24)
@given(graphs())
def test_a_model_of_tf_1_answers_as_its_session_with_gradients_where_it_had_them(tf, graph):
    with world.folder() as folder:
        check_v1(graph.script(), folder)


@budget(10)
@given(graphs(assigns=True))
def test_a_model_of_tf_1_that_assigns_goes_through_the_same_states_as_its_session(tf, graph):
    with world.folder() as folder:
        check_v1(graph.script(), folder)


def check_v1(script, folder):
    """The reference implementation, as loaded and after it saved it again; then the other
    MetaGraphs.
    """
    import tensorflow as tf

    names, path = world.run(script), folder / "model"
    try:
        asked = names["export"](folder)
    except (
        tf.errors.UnimplementedError
    ):  # the session has no answer: gradients of an empty TensorArray of unknown shape
        reject()
    loaded = reference_impl.load(path, tags=["serve"])
    check_answers(loaded, "serving_default", asked)
    fresh = reference_impl.load(path, tags=["serve"])
    reference_impl.save(fresh, folder / "again")
    # A Python gradient is in no model of TF 1: this process knows it by the name that a re-export
    # keeps.
    check_answers(reference_impl.load(folder / "again"), "serving_default", asked)
    for tag in names["TAGS"]:
        check_answers(reference_impl.load(path, tags=[tag, "serve"]), tag, asked)


def check_answers(model, key, asked):
    import tensorflow as tf

    variables = {variable.name.partition(":")[0]: variable for variable in model.variables}
    for feed, expected, gradients in asked:
        given = {
            name: tf.constant(
                value.tolist(),
                tf.string if value.dtype == object else tf.float32,
                shape=value.shape,
            )
            for name, value in feed.items()
        }
        with tf.GradientTape() as tape:
            answer = model.signatures[key](**given)
            total = tf.add_n([tf.reduce_sum(item) for item in answer.values()])
        assert {name: bits(item.numpy()) for name, item in answer.items()} == {
            name: bits(item) for name, item in expected.items()
        }
        if gradients:
            found = tape.gradient(total, {name: variables[name] for name in gradients})
            dense = {name: bits(tf.convert_to_tensor(item).numpy()) for name, item in found.items()}
            assert dense == {name: bits(item) for name, item in gradients.items()}


def tensor(array):
    import tensorflow as tf

    return tf.constant(
        array.tolist(), tf.string if array.dtype == object else tf.float32, shape=array.shape
    )


def bits(array):
    return world.bits(
        np.asarray(array) + 0, "float32"
    )  # -0.0 is 0.0: sums are made in another order


CHECKS = {
    "test_a_model_of_tf_1_answers_as_its_session_with_gradients_where_it_had_them": check_v1,
    "test_a_model_of_tf_1_that_assigns_goes_through_the_same_states_as_its_session": check_v1,
}
