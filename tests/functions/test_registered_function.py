"""A call gives the bits that TensorFlow gives, which depend on the sizes for which the runtime
optimises a function.
"""

from __future__ import annotations

import numpy as np
import pytest

import reference_impl

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FN-05")]
SHAPES = [(3, 4), (7, 4), (1, 4), (3, 4)]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def directory(tf, tmp_path_factory):
    """Functions that divide by a size: a known one becomes a factor."""

    def divided(x, training=False):
        size = tf.cast(tf.size(x), tf.float32)
        return x / 7.0 / size * 3.1 + tf.reduce_sum(x, keepdims=True) * root.factor / size

    root = tf.Module()
    root.factor = tf.Variable(0.3)
    spec = tf.TensorSpec([None, 4])
    root.open = tf.function(divided)
    root.open.get_concrete_function(spec)
    root.open.get_concrete_function(spec, training=True)
    root.declared = tf.function(lambda x: divided(x), input_signature=[spec])
    root.parts = tf.function(lambda x: {"y": [divided(x["a"]), x["b"]]})
    root.parts.get_concrete_function({"a": spec, "b": tf.TensorSpec([])})
    root.ragged = tf.function(lambda x: divided(x.values[:, None] * tf.ones([1, 4])))
    root.ragged.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.float32))
    root.concrete = root.open.get_concrete_function(spec)
    path = tmp_path_factory.mktemp("divided") / "model"
    tf.saved_model.save(root, str(path), root.declared)
    return path


CALLS = {
    "open": lambda tf, model, x: model.open(x),
    "open, by name": lambda tf, model, x: model.open(x=x, training=True),
    "open, an array": lambda tf, model, x: model.open(x.numpy()),
    "declared": lambda tf, model, x: model.declared(x),
    "parts": lambda tf, model, x: model.parts({"a": x, "b": tf.constant(2.0)})["y"][0],
    "ragged": lambda tf, model, x: model.ragged(tf.RaggedTensor.from_tensor(x)),
    "concrete": lambda tf, model, x: model.concrete(x),
    "signature": lambda tf, model, x: model.signatures["serving_default"](x)["output_0"],
    "in a function": lambda tf, model, x: tf.function(model.open)(x),
}


@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_bits(tf, directory, call, differentiated):
    ours, theirs = reference_impl.load(directory), tf.saved_model.load(str(directory))
    for seed, shape in enumerate(SHAPES):
        x = tf.random.stateless_uniform(shape, [seed, 1])
        if differentiated:  # which builds graphs of our functions
            with tf.GradientTape() as tape:
                tape.watch(x)
                CALLS[call](tf, ours, x)
        np.testing.assert_array_equal(
            CALLS[call](tf, ours, x), CALLS[call](tf, theirs, x), strict=True
        )


def test_functions_for_shapes_go_with_their_model(tf, directory):
    from tensorflow.python.eager import (
        context,
    )  # there is no public list of the runtime's functions

    def registered():
        return sum("__shapes" in name for name in context.context().list_function_names())

    before = registered()
    model = reference_impl.load(directory)
    for size in (1, 2, 3, 2, 1):
        model.open(tf.ones([size, 4]))
    assert registered() == before + 3
    del model
    assert registered() == before
