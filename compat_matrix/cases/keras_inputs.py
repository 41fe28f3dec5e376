"""A Keras 3 model whose inputs are a dict, saved unchanged: the default signature has one input for
each tensor.

Keras provides a function with one argument, whose tensors TensorFlow numbers.
"""

CLAUSES = ("IMP-04", "SIG-13")
FEATURES = ("keras", "signatures", "nests")
CHECKS = ("load", "signatures", "values", "reexport", "checkpoint")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    first, second = keras.Input([2], name="first"), keras.Input([3], name="second")
    both = keras.layers.Concatenate(name="both")([second, first])
    dense = keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(0.5), name="dense"
    )(both)
    model = keras.Model({"first": first, "second": second}, {"sum": dense, "first": first})
    answer = {
        "serving_default": lambda inputs, inputs_1: model({"first": inputs, "second": inputs_1})
    }
    return model, None, answer


def requests(np):
    return [
        ("serving_default", {"inputs": np.float32([[1, 2]]), "inputs_1": np.float32([[3, 4, 5]])})
    ]
