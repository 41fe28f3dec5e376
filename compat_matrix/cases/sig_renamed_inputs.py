"""A TensorSpec name that is not a Python identifier: the SignatureDef keeps `My-Input`, only graph
nodes are renamed.

Shipped TensorFlow announces a rename in an INFO line; clients still send the name of the spec.
"""

CLAUSES = ("SIG-07",)
FEATURES = ("signatures", "names")


def build(tf, work):
    root = tf.Module()
    spec = [tf.TensorSpec([None], tf.float32, name="My-Input")]
    root.f = tf.function(lambda x: x * 2.0, input_signature=spec)
    return root, root.f, {"serving_default": lambda **given: root.f(given["My-Input"])}


def requests(np):
    return [("serving_default", {"My-Input": np.float32([1, 2])})]
