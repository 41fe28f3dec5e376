"""Tables by the names of tf.contrib.lookup, in every TensorFlow. Python 3.6 syntax."""

import types


def lookup(tf):
    """``tf.contrib.lookup``; what it was made of where tf.contrib is gone, under the same names."""
    if hasattr(tf, "contrib"):
        return tf.contrib.lookup
    from tensorflow.python.ops import (
        lookup_ops,
    )  # compat.v1 exports the table classes only, not what makes one from a file

    names = (
        "HashTable",
        "KeyValueTensorInitializer",
        "TextFileInitializer",
        "MutableHashTable",
        "index_table_from_file",
        "index_to_string_table_from_file",
        "index_to_string_table_from_tensor",
    )
    members = {name: getattr(lookup_ops, name) for name in names}
    return types.SimpleNamespace(MutableDenseHashTable=lookup_ops.DenseHashTable, **members)
