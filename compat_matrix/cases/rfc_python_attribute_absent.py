"""RFC example: a plain Python attribute is not part of a SavedModel; access raises
AttributeError.
"""

CLAUSES = ("FN-14", "NG-02")
FEATURES = ("functions", "refusal")
CHECKS = ("load", "signatures", "values")
UNANSWERED = ("python_attribute.bit_length",)


def build(tf, work):
    has_fns = tf.Module()
    has_fns.a = tf.function(
        lambda x: x + has_fns.python_attribute, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    has_fns.python_attribute = 12
    return has_fns


def requests(np):
    return [("a", (np.float32(1),), {}), ("python_attribute.bit_length", (), {})]
