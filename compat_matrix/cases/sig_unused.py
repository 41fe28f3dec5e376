"""A signature that ignores an input, one whose output depends on no input, and an empty batch."""

CLAUSES = ("SIG-15", "SIG-17", "SIG-06")
FEATURES = ("signatures", "empty")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([[1.0], [2.0]])
    specs = [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.string)]

    @tf.function(input_signature=specs)
    def f(x, unused):
        return {"y": tf.matmul(x, root.v), "v": tf.identity(root.v)}

    root.f = f
    return root, f


def requests(np):
    some = {"x": np.float32([[1, 2]]), "unused": np.array([b"a", b"b"], object)}
    none = {"x": np.zeros([0, 2], np.float32), "unused": np.array([], object)}
    return [("serving_default", some), ("serving_default", none)]
