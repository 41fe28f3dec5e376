"""parse_example with dense, defaulted, variable-length and ragged features: the usual input stage
of a serving model.
"""

import struct

CLAUSES = ("REX-01", "SIG-11", "SIG-17")
FEATURES = ("parse_example", "strings", "sparse", "ragged")
REQUIRES = "tensorflow>=2.1"  # tf.io.RaggedFeature


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([[1.0], [2.0]])
    features = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "word": tf.io.FixedLenFeature([], tf.string, default_value="none"),
        "ids": tf.io.VarLenFeature(tf.int64),
        "tags": tf.io.RaggedFeature(tf.string),
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        parsed = tf.io.parse_example(examples, features)
        return {
            "y": tf.matmul(parsed["x"], root.w),
            "word": parsed["word"],
            "ids": tf.sparse.to_dense(parsed["ids"], default_value=-1),
            "tags": parsed["tags"].to_tensor(""),
        }

    root.serve = serve
    return root, serve


def _field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def _example(x, word=None, ids=(), tags=()):
    """Return a serialized tf.Example, written by hand because requests are made without
    TensorFlow.
    """
    features = {"x": _field(2, _field(1, struct.pack("<2f", *x)))}
    if word is not None:
        features["word"] = _field(1, _field(1, word))
    features["ids"] = _field(3, _field(1, bytes(ids)))
    features["tags"] = _field(1, b"".join(_field(1, tag) for tag in tags))
    entries = [
        _field(1, _field(1, key.encode()) + _field(2, value))
        for key, value in sorted(features.items())
    ]
    return _field(1, b"".join(entries))


def requests(np):
    batch = [
        _example((1, 2), b"w", (5, 6), (b"a",)),
        _example((3, 4)),
        _example((0, 0.5), b"", (7,), (b"b", b"c")),
    ]
    return [
        ("serving_default", {"examples": np.array(batch, object)}),
        ("serving_default", {"examples": np.array([], object)}),
    ]
