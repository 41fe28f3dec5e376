"""A DenseHashTable whose contents are state in the checkpoint.

The way in which the object graph names its save and restore functions changed between releases.
"""

CLAUSES = ("RES-15", "FMT-09", "FMT-10")
FEATURES = ("tables", "state", "checkpoint")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.counts = tf.lookup.experimental.DenseHashTable(
        tf.int64,
        tf.float32,
        -1.0,
        empty_key=-1,
        deleted_key=-2,
        initial_num_buckets=8,
    )
    root.counts.insert(tf.constant([7, 9], tf.int64), tf.constant([1.5, 2.5]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "key")])
    def read(key):
        # The shape that a table gives is not that of the signature in every release.
        count = tf.reshape(root.counts.lookup(key), [-1])
        return {"count": count, "size": root.counts.size()}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int64, "key"),
            tf.TensorSpec([None], tf.float32, "value"),
        ]
    )
    def insert(key, value):
        root.counts.insert(key, value)
        return {"size": root.counts.size()}

    root.read, root.insert = read, insert
    return root, {"serving_default": read, "insert": insert}


def requests(np):
    key = np.int64([7, 8, 9])
    new = {"key": np.int64([8]), "value": np.float32([3])}
    ask = ("serving_default", {"key": key})
    return [ask, ("insert", new), ask]
