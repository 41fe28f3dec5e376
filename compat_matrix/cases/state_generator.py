"""A tf.random.Generator on an attribute: its state is saved, and it continues from there.

The numbers are integers, so that the answer is exact; the type itself is not revived.
"""

CLAUSES = ("RP-05", "FN-01")
FEATURES = ("random", "state")
STATEFUL = True
REQUIRES = "tensorflow>=2.3"  # tf.random.Generator


def build(tf, work):
    root = tf.Module()
    root.generator = tf.random.Generator.from_seed(1234, alg="philox")
    root.generator.uniform_full_int([5])
    root.draw = tf.function(
        lambda: root.generator.uniform_full_int([3], tf.uint32), input_signature=[]
    )
    return root, root.draw


def requests(np):
    return [("serving_default", {}), ("serving_default", {}), ("draw", (), {})]
