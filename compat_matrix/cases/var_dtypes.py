"""A variable of every ordinary dtype, with its extreme values.

One signature reads them all, so that no reader can skip one.
"""

CLAUSES = ("PRIM-01", "RP-03", "FMT-12")
FEATURES = ("variables", "dtypes", "strings")
TIMEOUT = 15  # TensorFlow 1.13 hangs when it restores checkpoints of newer releases


def build(tf, work):
    root = tf.Module()
    root.values = {}
    for dtype in (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64):
        root.values[dtype.name] = tf.Variable(
            [dtype.min, 1, dtype.max], dtype=dtype, name=dtype.name
        )
    for dtype in (tf.float16, tf.float32, tf.float64):
        root.values[dtype.name] = tf.Variable(
            [dtype.max, -1.5, float("inf"), float("nan")], dtype=dtype
        )
    root.values["complex64"] = tf.Variable([1 + 2j, -3.5j], dtype=tf.complex64)
    root.values["complex128"] = tf.Variable([1 + 2j, -3.5j], dtype=tf.complex128)
    root.values["bool"] = tf.Variable([True, False], dtype=tf.bool)
    root.values["string"] = tf.Variable([b"bytes \x00\xff", b"", "größe".encode()], dtype=tf.string)
    root.read = tf.function(
        lambda: {key: tf.identity(v) for key, v in root.values.items()}, input_signature=[]
    )
    return root, root.read


def requests(np):
    return [("serving_default", {}), ("read", (), {})]
