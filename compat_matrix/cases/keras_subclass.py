"""A subclassed Keras 3 model that was called with named inputs; its signature is given
explicitly.
"""

CLAUSES = ("IMP-05", "SIG-02", "SIG-10")
FEATURES = ("keras", "signatures", "nests")
CHECKS = ("load", "signatures", "values", "reexport", "checkpoint")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()

    class Mixer(keras.Model):
        def __init__(self):
            super().__init__(name="mixer")
            self.left = keras.layers.Dense(2, kernel_initializer="ones", name="left")
            self.table = keras.layers.Embedding(4, 2, embeddings_initializer="ones", name="table")

        def call(self, inputs, training=False):
            out = self.left(inputs["x"]) + self.table(inputs["ids"])
            return {"out": out * 2.0 if training else out}

    model = Mixer()
    model({"x": tf.zeros([1, 3]), "ids": tf.zeros([1], tf.int32)})

    @tf.function(
        input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int32)]
    )
    def serve(x, ids):
        return model({"x": x, "ids": ids})

    return model, {"serving_default": serve}


def requests(np):
    return [("serving_default", {"x": np.float32([[1, 2, 3]]), "ids": np.int32([2])})]
