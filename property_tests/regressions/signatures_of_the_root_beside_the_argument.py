"""The attribute signatures of the root, which is no map of signatures, was lost without a word where signatures were given."""

import collections

import numpy as np
import tensorflow as tf

Pair = collections.namedtuple("Pair", ["first", "second"])


def weight(value):
    """One float32 of any value: the sum of a tensor, the length of strings, something of a Python value."""
    total = tf.constant(0.0)
    for part in tf.nest.flatten(value, expand_composites=True):
        if not tf.is_tensor(part) and not isinstance(part, tf.Variable):
            total += float(sum(map(ord, repr(part))) % 5)
            continue
        part = tf.convert_to_tensor(part)
        part = (
            tf.strings.length(part)
            if part.dtype == tf.string
            else tf.math.real(part)
            if part.dtype.is_complex
            else part
        )
        total += tf.reduce_sum(tf.cast(part, tf.float32))
    return total


@tf.custom_gradient
def tripled(value):
    """The identity, with a gradient of its own."""
    return tf.identity(value), lambda upstream: upstream * 3.0


def written(folder, name, text):
    """The path of a file with a text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode())
    return str(folder / name)


def lines(path):
    index = tf.lookup.TextFileIndex
    return tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )


def filled(table, keys, numbers):
    table.insert(keys, numbers)
    return table


def stepped(optimizer, pairs):
    if pairs:
        optimizer.apply_gradients(pairs)
    return optimizer


def build(folder):
    n0 = tf.Module()

    @tf.function(autograph=False)
    def f0():
        h = tf.constant([1.0, -2.0])
        return h

    n0.f0 = f0
    f0()
    signatures = {}
    n0.signatures = {"bad": tf.Variable(tf.constant(0.0, tf.float32))}
    return n0, signatures


REQUESTS = [
    (".f0", ""),
]
VARIABLES = []
REFUSED = ("SignatureError", "ATTR-07", "signatures")
# The end of the script.

PROPERTY = "test_an_invalid_model_is_refused_by_a_strict_save_with_the_right_error"
ARGUMENTS = {}
