"""RFC example: a loaded function takes a plain Python list where it was given a spec.

`obj.embed(["hello world"])` of the RFC's embedding outline, without the table.
"""

CLAUSES = ("PRIM-09",)
FEATURES = ("functions", "strings", "literals")


def build(tf, work):
    root = tf.Module()
    root.embed = tf.function(
        lambda sentences: tf.strings.length(sentences),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    return root, {}


def requests(np):
    return [("embed", (["hello world", "bye"],), {}), ("embed", (np.array([b"one"], object),), {})]
