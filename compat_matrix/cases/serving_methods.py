"""Classify and regress signatures of TF 2.x: their methods are set in the file after the save, as
TensorFlow documents it.

`tf.saved_model.save` calls every method "predict", so a server would refuse to classify. Each
signature has its own tensor.
"""

import struct

CLAUSES = ("SIG-01", "COMPAT-05", "GOAL-09")
FEATURES = ("signatures", "parse_example", "classify_regress", "serving")
REQUIRES = "tensorflow>=2.2"  # MethodNameUpdater
_METHODS = {
    "both": "classify",
    "classes": "classify",
    "scores": "classify",
    "vector": "regress",
    "column": "regress",
}


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([[1.0, -0.5], [2.0, 0.25]])
    features = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "bias": tf.io.FixedLenFeature([], tf.float32, default_value=0.5),
    }

    def scores(inputs):
        parsed = tf.io.parse_example(inputs, features)
        return tf.matmul(parsed["x"], root.w) + parsed["bias"][:, None]

    def classes(inputs):
        return tf.tile([["no", "größe"]], [tf.size(inputs), 1])

    results = {
        "both": lambda inputs: {"classes": classes(inputs), "scores": scores(inputs)},
        "classes": lambda inputs: {"classes": classes(inputs)},
        "scores": lambda inputs: {"scores": scores(inputs)},
        "vector": lambda inputs: {"outputs": scores(inputs)[:, 0]},
        "column": lambda inputs: {"outputs": scores(inputs)[:, 1:]},
    }
    spec = [tf.TensorSpec([None], tf.string, name="inputs")]
    root.functions = {
        name: tf.function(f, input_signature=spec, autograph=False) for name, f in results.items()
    }
    return root, dict(root.functions)


def after_save(tf, directory):
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(directory)
    for key in _METHODS:
        updater.replace_method_name(key, "tensorflow/serving/" + _METHODS[key])
    updater.save()


def _field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def _example(**features):
    """Return a serialized tf.Example of lists of floats."""
    values = {
        key: struct.pack("<{}f".format(len(value)), *value) for key, value in features.items()
    }
    entries = [
        _field(1, key.encode()) + _field(2, _field(2, _field(1, values[key])))
        for key in sorted(values)
    ]
    return _field(1, b"".join(_field(1, entry) for entry in entries))


def requests(np):
    # The bias is the same in all examples, so it can be sent once, as their context.
    rows = [_example(x=(1, 2), bias=(0.25,)), _example(x=(-1, 0.5), bias=(0.25,))]
    asked = [(key, {"inputs": np.array(rows, object)}) for key in sorted(_METHODS)]
    return asked + [("both", {"inputs": np.array([_example(x=(3, 0))], object)})]
