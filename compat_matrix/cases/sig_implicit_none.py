"""Nothing is inferred when two functions qualify, or when the only one sits on a child; the save
still succeeds.
"""

CLAUSES = ("IMP-02", "IMP-03", "IMP-06")
FEATURES = ("inferred signature",)


def build(tf, work):
    spec = [tf.TensorSpec([], tf.float32)]
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=spec)
    root.g = tf.function(lambda x: x + 2.0, input_signature=spec)
    root.child = tf.Module()
    root.child.h = tf.function(lambda x: x + 3.0, input_signature=spec)
    return root


def requests(np):
    return [(path, (np.float32(1),), {}) for path in ("f", "g", "child.h")]
