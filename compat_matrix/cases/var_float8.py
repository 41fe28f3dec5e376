"""Variables of the 8-bit floating point types, read directly and cast to float32."""

CLAUSES = ("PRIM-01", "RP-03")
FEATURES = ("variables", "dtypes", "float8")
REQUIRES = "tensorflow>=2.15"  # older releases have no kernel that assigns these dtypes


def build(tf, work):
    root = tf.Module()
    values = tf.constant([0.5, -1.5, 0.0, 2.0])
    names = ("float8_e5m2", "float8_e4m3fn")
    root.values = {name: tf.Variable(tf.cast(values, tf.as_dtype(name))) for name in names}
    root.raw = tf.function(
        lambda: {name: tf.identity(v) for name, v in root.values.items()}, input_signature=[]
    )
    root.wide = tf.function(
        lambda: {name: tf.cast(v, tf.float32) for name, v in root.values.items()},
        input_signature=[],
    )
    return root, {"raw": root.raw, "wide": root.wide}


def requests(np):
    return [("wide", {}), ("raw", {}), ("raw", (), {})]
