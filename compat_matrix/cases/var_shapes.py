"""Variables of odd shapes: 0-d, empty, rank 7, partly and fully unknown.

The shape of a variable may be wider than that of its value; the file holds both.
"""

CLAUSES = ("PRIM-01", "RP-03")
FEATURES = ("variables", "shapes", "unknown rank")


def build(tf, work):
    root = tf.Module()
    root.scalar = tf.Variable(3.0)
    root.empty = tf.Variable(tf.zeros([0, 3]))
    root.no_rows = tf.Variable(tf.zeros([2, 0, 2], tf.int64))
    root.deep = tf.Variable(tf.reshape(tf.range(4, dtype=tf.float32), [1, 2, 1, 1, 2, 1, 1]))
    root.partly = tf.Variable([[1.0, 2.0]], shape=tf.TensorShape([None, 2]))
    root.unknown = tf.Variable([1.0, 2.0, 3.0], shape=tf.TensorShape(None))
    names = ("scalar", "empty", "no_rows", "deep", "partly", "unknown")
    root.read = tf.function(
        lambda: {name: tf.identity(getattr(root, name)) for name in names}, input_signature=[]
    )
    return root, root.read


def requests(np):
    return [("serving_default", {}), ("read", (), {})]
