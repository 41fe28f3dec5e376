"""Several signatures over one variable: one changes it, another reads it.

All signatures of a model must see the same state.
"""

CLAUSES = ("GOAL-08", "ATTR-03", "SIG-02", "GOAL-11")
FEATURES = ("signatures", "state")
STATEFUL = True


def build(tf, work):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(10, dtype=tf.int64)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
        def add(self, by):
            return {"count": self.count.assign_add(by)}

        @tf.function(input_signature=[])
        def read(self):
            return {"count": self.count.read_value()}

        @tf.function(input_signature=[])
        def reset(self):
            self.count.assign(0)
            return {}

    root = Counter()
    return root, {"add": root.add, "read": root.read}


def requests(np):
    return [
        ("read", {}),
        ("add", {"by": np.int64(5)}),
        ("read", {}),
        ("add", (np.int64(1),), {}),
        ("reset", (), {}),
        ("read", (), {}),
    ]
