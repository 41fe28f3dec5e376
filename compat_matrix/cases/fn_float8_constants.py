"""Captured constants of the 8-bit floating point types, which TensorFlow has no op to serialise."""

CLAUSES = ("RES-04", "FN-05")
FEATURES = ("functions", "constants", "dtypes", "float8")
REQUIRES = "tensorflow>=2.15"  # older releases have no kernel that casts to these dtypes


def build(tf, work):
    root = tf.Module()
    names = ("float8_e5m2", "float8_e4m3fn")
    values = {
        name: tf.cast(tf.constant([0.5, -1.5, 0.0, 2.0]), tf.as_dtype(name)) for name in names
    }
    root.wide = tf.function(
        lambda: {name: tf.cast(v, tf.float32) for name, v in values.items()}, input_signature=[]
    )
    root.raw = tf.function(
        lambda: {name: tf.identity(v) for name, v in values.items()}, input_signature=[]
    )
    return root, {"wide": root.wide, "raw": root.raw}


def requests(np):
    return [("wide", {}), ("raw", {}), ("wide", (), {})]
