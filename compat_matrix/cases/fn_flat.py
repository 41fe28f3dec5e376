"""Functions without a structured signature: one with variables frozen to constants, one cut out of
an imported graph.

Both recipes are in TensorFlow's guides for frozen graphs. The arguments are not in the order of
their names.
"""

import importlib

CLAUSES = ("FN-05", "SIG-01")
FEATURES = ("functions", "signatures")


def build(tf, work):
    freeze = importlib.import_module(
        "tensorflow.python.framework.convert_to_constants"
    ).convert_variables_to_constants_v2
    weights = tf.Variable([3.0, 4.0])
    function = tf.function(
        lambda b, a: a * weights - b,
        input_signature=[tf.TensorSpec([], name="b"), tf.TensorSpec([2], name="a")],
    )
    with tf.Graph().as_default() as graph:
        b = tf.compat.v1.placeholder(tf.float32, [], "b")
        a = tf.compat.v1.placeholder(tf.float32, [2], "a")
        tf.subtract(a * tf.constant([3.0, 4.0]), b, name="difference")
    definition = graph.as_graph_def()
    importer = tf.compat.v1.wrap_function(
        lambda: tf.compat.v1.import_graph_def(definition, name=""), []
    )
    root = tf.Module()
    root.frozen = freeze(function.get_concrete_function())
    root.pruned = importer.prune(["b:0", "a:0"], "difference:0")
    root.held = [root.pruned]
    answer = tf.function(lambda b, a: a * weights - b)
    answerers = {
        "frozen": lambda b, a: {"output_0": answer(b, a)},
        "pruned": lambda b, a: {"output_0": answer(b, a)},
    }
    return root, {"frozen": root.frozen, "pruned": root.pruned}, answerers


def requests(np):
    b, a = np.float32(1), np.float32([1, 2])
    return [
        ("frozen", {"b": b, "a": a}),
        ("pruned", {"b": b, "a": a}),
        ("frozen", (b, a), {}),
        ("pruned", (b, a), {}),
    ]
