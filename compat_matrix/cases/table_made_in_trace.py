"""A table created while a function is traced: it is lifted out and captured, and has to be tracked
like any other.
"""

CLAUSES = ("RES-02", "RES-04")
FEATURES = ("tables", "tracing")


def build(tf, work):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = None

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def lookup(self, key):
            if self.table is None:
                initializer = tf.lookup.KeyValueTensorInitializer(
                    [1, 2], [10, 20], tf.int64, tf.int64
                )
                self.table = tf.lookup.StaticHashTable(initializer, -1)
            return self.table.lookup(key)

    root = Model()
    root.lookup(tf.constant([1], tf.int64))
    return root, root.lookup


def requests(np):
    return [("serving_default", {"key": np.int64([2, 1, 0])}), ("lookup", (np.int64([1]),), {})]
