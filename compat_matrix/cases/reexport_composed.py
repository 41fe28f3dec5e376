"""Two loaded models become parts of a new one; a function of one is replaced, another is deleted.

Everything imported is usable while a new graph is built, and the result can be saved.
"""

import os

CLAUSES = ("GOAL-02", "NG-03", "REX-01", "REX-03", "REX-04")
FEATURES = ("re-export", "functions", "gradients")


def build(tf, work):
    spec = [tf.TensorSpec([None], tf.float32)]
    parts = []
    for name, value in (("encoder", 2.0), ("head", 3.0)):
        part = tf.Module()
        part.v = tf.Variable(value)
        part.f = tf.function(_product(part), input_signature=spec)
        part.unwanted = tf.function(lambda x: x - 1.0, input_signature=spec)
        tf.saved_model.save(part, os.path.join(work, name))
        parts.append(tf.saved_model.load(os.path.join(work, name)))
    root = tf.Module()
    root.encoder, root.head = parts
    del root.encoder.unwanted
    root.head.unwanted = tf.function(lambda x: x + 1000.0, input_signature=spec)

    @tf.function(input_signature=spec)
    def both(x):
        with tf.GradientTape() as tape:
            y = root.head.f(root.encoder.f(x)) + root.head.unwanted(x)
        return {"y": y, "gradient": tape.gradient(y, root.encoder.v)}

    root.both = both
    return root, both


def _product(part):
    return lambda x: x * part.v


def requests(np):
    x = np.float32([1, 2])
    return [
        ("serving_default", {"x": x}),
        ("encoder.f", (x,), {}),
        ("head.unwanted", (x,), {}),
    ]
