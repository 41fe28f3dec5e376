"""An optimizer with its update rule: what the reference adds to the file changes nothing for other
readers.

The rule is a function of the library that nobody calls and a collection that nobody asks for
(docs/format/beyond_tensorflow.md).
"""

CLAUSES = ("OPT-01", "OPT-03", "OPT-04", "OPT-07")
FEATURES = ("keras", "optimizer", "extension")
REQUIRES = "tensorflow>=2.16"  # the optimizers of Keras 3
REFERENCE_OPTIONS = {"functional_optimizers": True}


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.optimizer = tf.keras.optimizers.SGD(0.25, momentum=0.5)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.v)])
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([2], tf.float32)])
    return root, root.f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
