"""An Adam optimizer of Keras 2 on a module, with its slot variables.

The class that the object graph names is registered by Keras 2 alone: TensorFlow 2.16 and later
cannot load the model. Session readers are not affected.
"""

CLAUSES = ("OPT-01", "OPT-02", "COMPAT-02")
FEATURES = ("optimizer", "slots", "keras", "version_skew")


def build(tf, work):
    optimizers = tf.keras.optimizers
    optimizers = getattr(optimizers, "legacy", optimizers)
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.optimizer = optimizers.Adam(0.5)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.v)])
    root.v.assign([3.0, 4.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def f(x):
        return {"y": x * root.v}

    root.f = f
    return root, f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
