"""Variables of the 4-bit integer types, cast to int8 on the way out."""

CLAUSES = ("PRIM-01", "RP-03")
FEATURES = ("variables", "dtypes", "int4")
REQUIRES = "tensorflow>=2.15"  # older releases have no tf.int4


def build(tf, work):
    root = tf.Module()
    root.signed = tf.Variable(tf.cast(tf.constant([-8, -1, 0, 7], tf.int8), tf.as_dtype("int4")))
    root.unsigned = tf.Variable(tf.cast(tf.constant([0, 1, 15], tf.int8), tf.as_dtype("uint4")))
    root.read = tf.function(
        lambda: {
            "signed": tf.cast(root.signed, tf.int8),
            "unsigned": tf.cast(root.unsigned, tf.int8),
        },
        input_signature=[],
    )
    return root, root.read


def requests(np):
    return [("serving_default", {}), ("read", (), {})]
