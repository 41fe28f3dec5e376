"""RFC example: a loaded object is saved again without an argument and keeps its signatures.

The second source of signatures is the object's own `.signatures`. Shipped TensorFlow never looks
there: a plain re-save silently loses the signatures of a loaded model.
"""

import os

CLAUSES = ("ATTR-01", "ATTR-02", "ATTR-04", "ATTR-06", "GOAL-13")
FEATURES = ("signatures", "re-export")
CHECKS = ("load", "signatures", "values")


def build(tf, work):
    class Net(tf.Module):
        @tf.function
        def infer(self, x):
            return x * 2.0

    net = Net()
    first = os.path.join(work, "serve")
    tf.saved_model.save(
        net, first, signatures=net.infer.get_concrete_function(tf.TensorSpec(None, tf.float32))
    )
    loaded = tf.saved_model.load(first)
    return loaded, None, dict(loaded.signatures)


def requests(np):
    return [("serving_default", {"x": np.float32([[1]])})]
