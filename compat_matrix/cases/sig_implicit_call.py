"""`__call__` with an input signature automatically becomes the default signature."""

CLAUSES = ("IMP-01", "REV-03", "ATTR-05")
FEATURES = ("inferred signature", "methods")


def build(tf, work):
    class Affine(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def __call__(self, x):
            return {"y": tf.matmul(x, self.w)}

    root = Affine()
    return root, None, {"serving_default": root}


def requests(np):
    x = np.float32([[1, 1], [2, 0]])
    return [("serving_default", {"x": x}), ("__call__", (x,), {})]
