"""Tables from a vocabulary file, which is an asset, and from a list.

Later releases register the class of a static table (`registered_name`).
"""

import os

CLAUSES = ("PRIM-07", "RES-05", "RES-10", "RES-13")
FEATURES = ("tables", "assets", "strings")


def build(tf, work):
    # TensorFlow names a table after its file: a relative path does not depend on the machine.
    os.chdir(work)
    path = "fruits.txt"
    with open(path, "w") as stream:
        stream.write("apple\npear\nfig\n")
    index = tf.lookup.TextFileIndex
    root = tf.Module()
    root.ids = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        ),
        -1,
    )
    root.prices = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant([0, 1, 2], tf.int64), tf.constant([0.5, 0.25, 2.0])
        ),
        -1.0,
    )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "fruit")])
    def lookup(fruit):
        ids = root.ids.lookup(fruit)
        return {"id": ids, "price": root.prices.lookup(ids)}

    root.lookup = lookup
    return root, lookup


def after_save(tf, directory):
    """Leave the folder `work`, which will be removed."""
    os.chdir(os.path.dirname(directory))


def requests(np):
    fruit = np.array([b"fig", b"kiwi", b"apple", b""], object)
    return [("serving_default", {"fruit": fruit}), ("lookup", (fruit,), {})]
