"""Quantised dtypes: a qint8 variable, and quantised tensors as inputs and outputs of a
signature.
"""

CLAUSES = ("PRIM-01", "RP-03")
FEATURES = ("dtypes", "quantised")


def build(tf, work):
    root = tf.Module()
    root.weights = tf.Variable(tf.constant([-128, 0, 127], tf.qint8))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def quantize(x):
        out = tf.raw_ops.QuantizeV2(
            input=x, min_range=0.0, max_range=255.0, T=tf.quint8, mode="MIN_COMBINED"
        )
        return {
            "quantized": out[0],
            "weights": tf.bitcast(root.weights, tf.int8),
            "raw": tf.identity(root.weights),
        }

    root.dequantize = tf.function(
        lambda q: tf.raw_ops.Dequantize(
            input=q, min_range=0.0, max_range=255.0, mode="MIN_COMBINED"
        ),
        input_signature=[tf.TensorSpec([None], tf.quint8)],
    )
    root.quantize = quantize
    return root, {"quantize": quantize, "dequantize": root.dequantize}


def requests(np):
    return [
        ("quantize", {"x": np.float32([0, 1, 254, 255])}),
        ("dequantize", {"q": {"$cast": ["quint8", np.float32([0, 128, 255])]}}),
    ]
