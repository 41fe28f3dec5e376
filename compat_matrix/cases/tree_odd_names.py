"""Attribute names, dict keys and variable names that need escaping somewhere.

Keys with slashes, dots and words of the checkpoint format, unicode and private attributes, two
variables with one name.
"""

CLAUSES = ("FN-01", "FN-02", "PRIM-01")
FEATURES = ("names", "unicode")


def build(tf, work):
    root = tf.Module()
    spec = [tf.TensorSpec([], tf.float32)]
    keys = ["a/b", "a.b", "a/.S/b", "OBJECT_CONFIG_JSON", " ", "ключ"]
    root.by_key = {key: tf.Variable(2.0**i) for i, key in enumerate(keys)}
    root.größe = tf.Variable(128.0, name="size")
    root._private = tf.Variable(256.0, name="size")
    root.total = tf.function(
        lambda x: (
            x + tf.add_n([tf.convert_to_tensor(root.by_key[key]) for key in keys]) + root.größe
        ),
        input_signature=spec,
    )
    root._hidden = tf.function(lambda x: x + root._private, input_signature=spec)
    return root, {"total": root.total, "has space/and-slash": root._hidden}


def requests(np):
    x = np.float32(0.5)
    return [
        ("total", {"x": x}),
        ("has space/and-slash", {"x": x}),
        ("_hidden", (x,), {}),
    ]
