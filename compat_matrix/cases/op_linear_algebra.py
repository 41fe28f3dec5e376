"""einsum, convolution, pooling, gather, scatter, segments, sorting: small integers, so that any
order of sums is exact.
"""

CLAUSES = ("SIG-17", "RP-07")
FEATURES = ("ops",)


def build(tf, work):
    root = tf.Module()
    root.kernel = tf.Variable(tf.reshape(tf.range(8, dtype=tf.float32), [2, 2, 1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 1], tf.float32)])
    def run(image):
        conv = tf.nn.conv2d(image, root.kernel, strides=1, padding="SAME")
        flat = tf.reshape(image, [-1, 16])
        return {
            "conv": conv,
            "pool": tf.nn.max_pool2d(conv, 2, 2, "VALID"),
            "einsum": tf.einsum("bhwc,bhvc->bwv", conv, conv),
            "scatter": tf.scatter_nd([[0], [2]], flat[:1, :2][0], [3]),
            "segments": tf.math.unsorted_segment_sum(flat[0], tf.range(16) % 3, 3),
            "top": tf.math.top_k(flat, 2).indices,
            "sorted": tf.argsort(flat, direction="DESCENDING", stable=True),
            "unique": tf.unique(flat[0] // 4.0)[1],
        }

    root.run = run
    return root, run


def requests(np):
    image = np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1) % 7
    return [("serving_default", {"image": image}), ("run", (image[:1],), {})]
