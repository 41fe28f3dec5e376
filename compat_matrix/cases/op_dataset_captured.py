"""A dataset on an attribute, made outside and captured by a function.

The object graph has a node that rebuilds the variant when loading.
"""

CLAUSES = ("RES-04", "RP-04", "FN-07")
FEATURES = ("datasets", "resources")


def build(tf, work):
    root = tf.Module()
    root.dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).map(lambda i: i * i)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def total(scale):
        return root.dataset.reduce(tf.constant(0), lambda a, b: a + b) * scale

    root.total = total
    return root, total


def requests(np):
    return [("serving_default", {"scale": np.int32(2)}), ("total", (np.int32(1),), {})]
