"""Serialized `tf.Example` messages parsed by a signature, as model servers are asked.

The op that parses changed between releases (`ParseExample`, `ParseExampleV2`).
"""

import struct

CLAUSES = ("SIG-17", "RP-07")
FEATURES = ("ops", "strings")


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([[2.0], [4.0]])
    features = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "word": tf.io.FixedLenFeature([], tf.string, default_value="none"),
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serve(examples):
        parsed = tf.io.parse_example(examples, features)
        return {"scores": tf.matmul(parsed["x"], root.w), "word": parsed["word"]}

    root.serve = serve
    return root, serve


def _field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def _example(x, word=None):
    """Return a serialized tf.Example, written by hand: requests are made without TensorFlow."""
    features = {"x": _field(2, _field(1, struct.pack("<2f", *x)))}
    if word is not None:
        features["word"] = _field(1, _field(1, word))
    entries = [
        _field(1, _field(1, key.encode()) + _field(2, value))
        for key, value in sorted(features.items())
    ]
    return _field(1, b"".join(entries))


def requests(np):
    batch = [_example((1, 2)), _example((3, 4), b"yes")]
    return [("serving_default", {"examples": np.array(batch, object)})]
