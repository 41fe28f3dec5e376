"""A small model with a part for each kind of fault: equal variables, defaults, traces, a gradient,
a table, two outputs.
"""

import os

CLAUSES = ("FMT-14",)
FEATURES = ("variables", "functions", "tables", "assets", "signatures")
TOLERANCE = (
    1e-3,
    0.0,
    "as wide as a case may have it: what must be equal bit by bit is found all the same",
)


def build(tf, work):
    path = os.path.join(work, "vocabulary")
    with open(path, "w") as stream:
        stream.write("the\nquick\nbrown\nfox\n")
    index = tf.lookup.TextFileIndex
    rows = tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )

    root = tf.Module()
    root.first = tf.Variable([1.0, -2.0])
    root.second = tf.Variable([3.0, 0.0])
    root.frozen = tf.Variable(4.0, trainable=False)
    root.words = tf.lookup.StaticHashTable(rows, -1)

    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * 100.0

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32), tf.TensorSpec([2], tf.float32)])
    def serve(x, y):
        return {"sum": x * root.first + y, "difference": (x - y * root.second) / root.frozen}

    @tf.function
    def power(x, exponent=2, *, negative=False):
        return -(x**exponent) if negative else x**exponent

    vector = tf.TensorSpec([2], tf.float32)
    power.get_concrete_function(vector)
    power.get_concrete_function(vector, 3, negative=True)
    root.serve, root.power = serve, power
    root.values = tf.function(lambda: (root.first + 0.0, root.second + 0.0), input_signature=[])
    root.forward = tf.function(lambda x: scaled(x) * root.first, input_signature=[vector])
    root.lookup = tf.function(
        lambda word: root.words.lookup(word), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    return root, {"serving_default": serve, "lookup": root.lookup}


def requests(np):
    x, y = np.float32([0.5, 8]), np.float32([-1, 0.25])
    return [
        ("serving_default", {"x": x, "y": y}),
        ("serving_default", {"x": y, "y": x}),
        ("lookup", {"word": np.array([b"fox", b"the", b"dog"], object)}),
        ("serve", (x, y), {}),
        ("power", (x,), {}),
        ("power", (x, 3), {"negative": True}),
        ("forward", (x,), {}),
        ("values", (), {}),
    ]
