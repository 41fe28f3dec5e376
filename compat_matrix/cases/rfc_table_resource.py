"""RFC example: a table written as a TrackableResource whose initialiser captures an asset.

The object exports how its resource is created and initialised. A loader runs both, the initialiser
after the variables.
"""

import os

CLAUSES = ("RES-03", "RES-04", "RES-07", "RES-08", "RES-10", "RES-11", "RP-04", "RP-06", "FMT-13")
FEATURES = ("tables", "assets", "resources")
REQUIRES = "tensorflow>=2.6"  # tf.saved_model.experimental.TrackableResource


def build(tf, work):
    vocabulary = os.path.join(work, "words.txt")
    with open(vocabulary, "w") as stream:
        stream.write("red\ngreen\nblue\n")

    root = tf.Module()

    class Table(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.HashTableV2(
                key_dtype=tf.string, value_dtype=tf.int64, shared_name="rfc_words"
            )

        def _initialize(self):
            tf.raw_ops.InitializeTableFromTextFileV2(
                table_handle=self.resource_handle,
                filename=root.asset.asset_path,
                key_index=-2,
                value_index=-1,
            )

    root.asset = tf.saved_model.Asset(vocabulary)
    root.table = Table()
    root.table._initialize()

    def lookup(keys):
        missing = tf.constant(-1, tf.int64)
        return tf.raw_ops.LookupTableFindV2(
            table_handle=root.table.resource_handle, keys=keys, default_value=missing
        )

    root.lookup = tf.function(lookup, input_signature=[tf.TensorSpec([None], tf.string)])
    return root, root.lookup


def requests(np):
    keys = np.array([b"blue", b"red", b"black"], object)
    return [("serving_default", {"keys": keys}), ("lookup", (keys,), {})]
