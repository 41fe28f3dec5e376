"""TensorArrays across a while loop: written, read, concatenated and stacked, of unknown size."""

CLAUSES = ("RP-07", "COMPAT-05")
FEATURES = ("control flow", "tensor lists")


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def fibonacci(x):
        array = tf.TensorArray(
            tf.int64, size=2, dynamic_size=True, clear_after_read=False, element_shape=[]
        )
        array = array.write(0, x[0]).write(1, x[1])
        for i in tf.range(2, 10):
            array = array.write(i, array.read(i - 1) + array.read(i - 2))
        parts = tf.TensorArray(
            tf.int64, size=0, dynamic_size=True, infer_shape=False, element_shape=[None]
        )
        for i in tf.range(3):
            parts = parts.write(i, x[:i])
        return {"stacked": array.stack(), "concatenated": parts.concat()}

    root.fibonacci = fibonacci
    return root, fibonacci


def requests(np):
    return [("serving_default", {"x": np.int64([1, 1, 5])})]
