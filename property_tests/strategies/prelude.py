"""What every script begins with: the helpers its statements use.

So a script needs nothing of ours.
"""

PRELUDE = '''\
import collections
import sys
import types

import numpy as np
import tensorflow as tf

Pair = collections.namedtuple("Pair", ["first", "second"])
SHAPES = [tf.TensorShape([2, 3]), tf.TensorShape([None, 3]), tf.TensorShape(None), tf.TensorShape([])]
shared = sys.modules.setdefault("types_of_scripts", types.ModuleType("types_of_scripts"))  # a type is registered once

if not hasattr(shared, "Scaled"):

    class Scaled(tf.experimental.ExtensionType):
        __name__ = "scripts.Scaled"
        values: tf.Tensor
        scale: tf.Tensor
        label: str

    shared.Scaled = Scaled
Scaled = shared.Scaled


def weight(value):
    """One float32 of any value: the sum of a tensor, the length of strings, something of a Python value."""
    total = tf.constant(0.0)
    for part in tf.nest.flatten(value, expand_composites=True):
        if not tf.is_tensor(part) and not isinstance(part, tf.Variable):
            total += float(sum(map(ord, repr(part))) % 5)
            continue
        part = tf.convert_to_tensor(part)
        part = tf.strings.length(part) if part.dtype == tf.string else tf.math.real(part) if part.dtype.is_complex else part
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
    return tf.lookup.TextFileInitializer(path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)


def filled(table, keys, numbers):
    table.insert(keys, numbers)
    return table


def stepped(optimizer, pairs):
    if pairs:
        optimizer.apply_gradients(pairs)
    return optimizer
'''  # noqa: E501

END = "# The end of the script."  # promote.py cuts there
