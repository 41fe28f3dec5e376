"""An Adam optimizer of Keras 2 with slot variables on a module.

The object graph names a class that only Keras 2 registers: TensorFlow has it until 2.15, whatever the writer. Session readers
do not care. The same with an optimizer of `tf.compat.v1`: `optimizer_v1_adam`.
"""

CLAUSES = ("OPT-01", "OPT-02", "COMPAT-02")
FEATURES = ("optimizer", "slots", "keras", "version_skew")
REQUIRES = "tensorflow>=2.4,<2.16"  # Keras 3, which came with 2.16, saves no slots


def build(tf, work):
    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)  # since 2.9 also under this name, since 2.11 only
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.optimizer = optimizers.Adam(0.5)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.v)])
    root.v.assign([3.0, 4.0])
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([2], tf.float32)])
    return root, root.f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
