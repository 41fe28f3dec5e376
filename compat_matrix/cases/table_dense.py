"""DenseHashTable with contents, one key removed and added again.

The checkpoint form differs from that of MutableHashTable; empty and deleted keys are reserved
values.
"""

CLAUSES = ("RES-15", "FN-01", "FMT-09")
FEATURES = ("tables", "state", "checkpoint")


def build(tf, work):
    root = tf.Module()
    root.table = tf.lookup.experimental.DenseHashTable(
        key_dtype=tf.int64,
        value_dtype=tf.float32,
        default_value=-1.0,
        empty_key=-1,
        deleted_key=-2,
        initial_num_buckets=8,
    )
    keys = tf.range(20, dtype=tf.int64)
    root.table.insert(keys, tf.cast(keys * keys, tf.float32))
    root.table.erase(tf.constant([3, 4], tf.int64))
    root.table.insert(tf.constant([4], tf.int64), tf.constant([4.5]))
    root.read = tf.function(
        lambda key: {"value": root.table.lookup(key), "size": root.table.size()},
        input_signature=[tf.TensorSpec([None], tf.int64)],
    )
    return root, root.read


def requests(np):
    key = np.int64([0, 3, 4, 19, 20])
    return [("serving_default", {"key": key}), ("read", (key,), {})]
