"""Warm-up requests of three kinds in assets.extra: a server answers them before it offers the
model.
"""

import struct

CLAUSES = ("GOAL-09", "COMPAT-05")
FEATURES = ("assets_extra", "warm-up", "classify_regress", "serving")
CHECKS = ("load", "values", "relocate", "reexport")
REQUIRES = "tensorflow>=2.2"  # MethodNameUpdater


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.string)]
    )
    def named(x, label):
        return {"y": x * root.v, "label": tf.strings.join([label, "!"])}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def total(inputs):
        parsed = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})
        return {"outputs": tf.reduce_sum(parsed["x"] * root.v, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def score(inputs):
        parsed = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})
        return {"scores": parsed["x"] * root.v}

    root.functions = [named, total, score]
    return root, {"serving_default": named, "total": total, "score": score}


def after_save(tf, directory):
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(directory)
    updater.replace_method_name("total", "tensorflow/serving/regress")
    updater.replace_method_name("score", "tensorflow/serving/classify")
    updater.save()


def _field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def _example(*x):
    entry = _field(1, b"x") + _field(2, _field(2, _field(1, struct.pack("<2f", *x))))
    return _field(1, _field(1, entry))


def warmup(np):
    return [
        (
            "predict",
            "serving_default",
            {"x": np.float32([[1, 2]]), "label": np.array(b"\xff\x00", object)},
        ),
        ("predict", "total", {"inputs": np.array([_example(1, 2)], object)}),
        ("regress", "total", [_example(1, 2), _example(3, 4)]),
        ("classify", "score", [_example(0, -1)]),
    ]


def requests(np):
    rows = np.array([_example(1, 2), _example(0.5, 0)], object)
    return [
        (
            "serving_default",
            {"x": np.float32([[1, 2], [0, -1]]), "label": np.array(b"text", object)},
        ),
        ("total", {"inputs": rows}),
        ("score", {"inputs": rows}),
    ]
