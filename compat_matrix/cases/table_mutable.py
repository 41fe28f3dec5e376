"""MutableHashTables whose contents are state: scalars and vectors as values, filled before the
export.

The contents are stored in the checkpoint; a function may insert more after loading.
"""

CLAUSES = ("RES-15", "FN-01", "FMT-09", "FMT-10", "GOAL-10")
FEATURES = ("tables", "state", "checkpoint")
STATEFUL = True
REQUIRES = "tensorflow>=2.8"  # tf.lookup.experimental.MutableHashTable


def build(tf, work):
    root = tf.Module()
    root.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    root.counts.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    root.vectors = tf.lookup.experimental.MutableHashTable(
        tf.int64, tf.float32, tf.constant([0.0, 0.0])
    )
    root.vectors.insert(tf.constant([7], tf.int64), tf.constant([[1.5, 2.5]]))
    root.empty = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 99)

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)]
    )
    def read(key, number):
        return {
            "count": root.counts.lookup(key),
            "vector": root.vectors.lookup(number),
            "empty": root.empty.lookup(number),
            "size": root.counts.size(),
        }

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)]
    )
    def insert(key, value):
        root.counts.insert(key, value)
        return {"size": root.counts.size()}

    root.read, root.insert = read, insert
    return root, {"read": read, "insert": insert}


def requests(np):
    ask = {"key": np.array([b"a", b"b", b"c"], object), "number": np.int64([7, 8])}
    new = {"key": np.array([b"c", b"a"], object), "value": np.int64([3, 4])}
    return [("read", ask), ("insert", new), ("read", ask)]
