"""An Adam optimizer of tf.keras on a module: with slot variables until 2.15, where that is Keras 2.

The object graph of these writers names a class that only Keras 2 registers, which TensorFlow has
until 2.15: newer readers refuse the model. Session readers do not care. The same with an optimizer
of `tf.compat.v1` in every writer: `optimizer_v1_adam`.
"""

CLAUSES = ("OPT-01", "OPT-02", "COMPAT-02")
FEATURES = ("optimizer", "slots", "keras", "version_skew")
REQUIRES = "tensorflow>=2.4"


def build(tf, work):
    keras_3 = hasattr(tf.keras, "ops")  # has something called `legacy` as well, which raises
    optimizers = (
        tf.keras.optimizers
        if keras_3
        else getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)
    )
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
