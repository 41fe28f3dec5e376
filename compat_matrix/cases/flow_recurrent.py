"""A recurrent cell unrolled over time in a loop, stopping at each sequence's length.

The arithmetic is clipped instead of squashed, so that the numbers are exact.
"""

CLAUSES = ("RP-07", "GOAL-04", "COMPAT-05")
FEATURES = ("control flow", "tensor lists")


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable(tf.eye(3) * 0.5)
    root.u = tf.Variable([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 3], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def encode(x, length):
        state = tf.zeros_like(x[:, 0])
        outputs = tf.TensorArray(tf.float32, size=tf.shape(x)[1])
        for t in tf.range(tf.shape(x)[1]):
            new = tf.clip_by_value(tf.matmul(x[:, t], root.w) + tf.matmul(state, root.u), -4.0, 4.0)
            state = tf.where((t < length)[:, None], new, state)
            outputs = outputs.write(t, state)
        return {"state": state, "outputs": tf.transpose(outputs.stack(), [1, 0, 2])}

    root.encode = encode
    return root, encode


def requests(np):
    x = np.arange(18, dtype=np.float32).reshape(2, 3, 3) / 4
    return [("serving_default", {"x": x, "length": np.int32([3, 1])})]
