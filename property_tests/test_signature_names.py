"""Inputs of signatures with any names: the same tensor reaches the same argument, whoever wrote the
file and whoever reads it.
"""

from __future__ import annotations

import keyword

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from property_tests import implementations, world
from property_tests.implementations import BOTH, REFERENCE
from property_tests.profiles import budget
from property_tests.test_readers_agree import by_c_api, by_session, c_api
from reference_impl.graph.argument_names import python_name

pytestmark = pytest.mark.tensorflow

KEY = "serving_default"
# Names that TensorFlow can write: it refuses those that begin with an underscore, differ in case
# alone, are keywords of Python, or are the scope of another one.
NAMES = st.from_regex(r"[abAB][ab1_AB.-]{0,3}(/[ab1_AB.-]{1,2})?", fullmatch=True)
INPUTS = st.lists(
    NAMES, min_size=2, max_size=4, unique_by=lambda name: python_name(name).lower()
).filter(
    lambda names: (
        not any(name.lower().startswith(f"{other.lower()}/") for name in names for other in names)
    )
)
# Names that only `reference_impl` writes, and every reader reads.
OTHERS = st.from_regex(r"[abAB_²1][ab1_AB./ ²-]{0,3}", fullmatch=True) | st.sampled_from(
    ["in", "from", "class", "arg_in"]
)
PASSES = st.lists(st.tuples(st.sampled_from(BOTH), st.sampled_from(BOTH)), max_size=2)


@budget(40)
@given(INPUTS, st.randoms(use_true_random=False), st.booleans(), st.sampled_from(BOTH), PASSES)
def test_every_reader_binds_the_inputs_of_a_signature_as_the_function_did(
    tf, names, random, own_names, writer, passes
):
    """Parameters of the Python function have names of their own, or those of the inputs in another
    order.
    """
    parameters = [python_name(name) for name in names]
    random.shuffle(parameters)
    assume(not any(keyword.iskeyword(name) for name in parameters))
    with world.folder() as folder:
        check_function(
            names,
            parameters if own_names else [f"p{i}" for i in range(len(names))],
            writer,
            passes,
            folder,
        )


@budget(20)
@given(st.lists(OTHERS, min_size=2, max_size=4, unique_by=python_name), st.integers(0, 2))
def test_every_reader_binds_inputs_whose_names_only_the_reference_implementation_writes(
    tf, names, passes
):
    with world.folder() as folder:
        parameters = [f"p{i}" for i in range(len(names))]
        check_function(names, parameters, REFERENCE, [(REFERENCE, REFERENCE)] * passes, folder)


@budget(25)
@given(INPUTS, PASSES)
def test_every_reader_binds_the_inputs_of_a_signature_of_tf_1_as_its_session_did(tf, names, passes):
    with world.folder() as folder:
        check_v1(names, passes, folder)


def check_function(names, parameters, writer, passes, folder):
    import tensorflow as tf

    root = tf.Module()
    specs = [tf.TensorSpec([], tf.float32, name=name) for name in names]
    terms = " + ".join(f"{10**i} * {name}" for i, name in enumerate(parameters))
    script = f"def f({', '.join(parameters)}):\n    return {{'y': {terms}}}"
    root.f = tf.function(world.run(script)["f"], input_signature=specs, autograph=False)
    feed = feed_of(names)
    expected = float(root.f.get_concrete_function()(**feed)["y"])
    check_passes(
        implementations.save(writer, root, folder / "0", {KEY: root.f}),
        feed,
        expected,
        passes,
        folder,
    )


def check_v1(names, passes, folder):
    import tensorflow as tf

    feed, path = feed_of(names), folder / "0"
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = {
            name: tf.compat.v1.placeholder(tf.float32, [], f"x{i}") for i, name in enumerate(names)
        }
        y = tf.add_n([10.0**i * x for i, x in enumerate(inputs.values())])
        tf.compat.v1.saved_model.simple_save(session, str(path), inputs, {"y": y})
        expected = float(
            session.run(y, {inputs[name]: value.numpy() for name, value in feed.items()})
        )
    check_passes(path, feed, expected, passes, folder)


def feed_of(names):
    import tensorflow as tf

    return {name: tf.constant(float(number)) for number, name in enumerate(names, 1)}


def check_passes(path, feed, expected, passes, folder):
    """Ask every reader, load and save the model, and ask again."""
    check_readers(path, feed, expected)
    for number, (reader, writer) in enumerate(passes, 1):
        note(f"loaded by {reader}, saved by {writer}")
        loaded = implementations.load(reader, path)
        path = implementations.save(writer, loaded, folder / str(number), dict(loaded.signatures))
        check_readers(path, feed, expected)


def check_readers(path, feed, expected):
    import tensorflow as tf

    asked = {
        "session": by_session(path, [(KEY, feed)], tf),
        "C API": by_c_api(c_api(), path, [(KEY, feed)]),
    }
    for reader in BOTH:
        signature = implementations.load(reader, path).signatures[KEY]
        adapted = {python_name(name): value for name, value in feed.items()}
        for how, given_feed in (("names of the file", feed), ("names of Python", adapted)):
            asked[f"{reader} by {how}"] = [{"y": world.plain(signature(**given_feed)["y"])}]
    wanted = [{"y": world.plain(tf.constant(expected))}]
    assert asked == dict.fromkeys(asked, wanted)
