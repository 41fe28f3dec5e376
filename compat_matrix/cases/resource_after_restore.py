"""A resource whose initialiser reads a variable: it must run after the variables are restored.

The variable was assigned after its creation, so an initialiser that runs too early inserts the
wrong number.
"""

CLAUSES = ("RP-09", "RP-06", "RES-03", "RP-04")
FEATURES = ("resources", "tables", "state")
REQUIRES = "tensorflow>=2.6"  # tf.saved_model.experimental.TrackableResource


def build(tf, work):
    root = tf.Module()
    root.value = tf.Variable(1, dtype=tf.int64)

    class Table(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.int64, shared_name="after_restore"
            )

        def _initialize(self):
            zero = tf.zeros([1], tf.int64)
            tf.raw_ops.LookupTableInsertV2(
                table_handle=self.resource_handle, keys=zero, values=root.value[None]
            )

    root.table = Table()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def read(key):
        missing = tf.constant(-1, tf.int64)
        return tf.raw_ops.LookupTableFindV2(
            table_handle=root.table.resource_handle, keys=key, default_value=missing
        )

    root.read = read
    root.value.assign(9)
    root.table._initialize()
    return root, read


def requests(np):
    return [("serving_default", {"key": np.int64([0, 1])}), ("read", (np.int64([0]),), {})]
