"""RFC example: a loaded object gets a function that parses tf.Example protos, and is exported again
with it.

The new function calls a loaded one, which stays unchanged. parse_example does not support float64,
so x2 is cast.
"""

import os
import struct

CLAUSES = ("REX-01", "REX-02", "REX-03", "NG-03", "GOAL-13")
FEATURES = ("signatures", "re-export", "parse_example", "strings")


def build(tf, work):
    class Net2(tf.Module):
        def __init__(self):
            super().__init__()
            self.bias = tf.Variable(1.0)

        @tf.function
        def infer(self, labels, training, x1, x2):
            return labels, x1 + self.bias, x2 + 1.0

    first = Net2()
    first.infer(
        tf.zeros([2, 1], tf.int64),
        training=False,
        x1=tf.zeros([2, 1, 3]),
        x2=tf.zeros([2, 1], tf.float64),
    )
    tf.saved_model.save(first, os.path.join(work, "first"))
    net = tf.saved_model.load(os.path.join(work, "first"))

    @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
    def parse(serialized):
        features = {
            "labels": tf.io.FixedLenFeature([1], tf.int64),
            "x1": tf.io.FixedLenFeature([1, 3], tf.float32),
            "x2": tf.io.FixedLenFeature([1], tf.float32),
        }
        parsed = tf.io.parse_example(serialized, features)
        return net.infer(
            parsed["labels"], training=False, x1=parsed["x1"], x2=tf.cast(parsed["x2"], tf.float64)
        )

    net.infer_from_proto = parse
    return net, net.infer_from_proto


def _field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def _example(label, x1, x2):
    """Return a serialized tf.Example, written by hand because requests are made without
    TensorFlow.
    """
    features = {
        "labels": _field(3, _field(1, bytes([label]))),
        "x1": _field(2, _field(1, struct.pack("<3f", *x1))),
        "x2": _field(2, _field(1, struct.pack("<f", x2))),
    }
    entries = [
        _field(1, _field(1, key.encode()) + _field(2, value))
        for key, value in sorted(features.items())
    ]
    return _field(1, b"".join(entries))


def requests(np):
    serialized = np.array([_example(7, [1, 2, 3], 0.5), _example(8, [4, 5, 6], 1.5)], object)
    keywords = {"training": False, "x1": np.ones([2, 1, 3], np.float32), "x2": np.zeros([2, 1])}
    return [
        ("serving_default", {"serialized": serialized}),
        ("infer", (np.zeros([2, 1], np.int64),), keywords),
    ]
