"""A module with methods, a child, and variables of several dtypes, shapes and kinds.

Later releases record more about the same object: `debug_name` of variable handles,
`DisableCopyOnRead` before a variable is written, `registered_name` and `dependencies` of nodes,
`fingerprint.pb`.
"""

CLAUSES = ("PRIM-02", "PRIM-06", "FN-01", "FMT-09")
FEATURES = ("variables", "functions", "checkpoint")
STATEFUL = True


def build(tf, work):
    class Child(tf.Module):
        def __init__(self):
            super(Child, self).__init__(name="child")
            self.scale = tf.Variable([2.0, 4.0], name="scale")

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
        def __call__(self, x):
            return x * self.scale

    root = tf.Module(name="root")
    root.child = Child()
    root.counter = tf.Variable(3, trainable=False, dtype=tf.int64, name="counter")
    root.half = tf.Variable([0.5, -0.5], dtype=tf.bfloat16, name="half")
    root.flag = tf.Variable(True, name="flag")
    root.words = tf.Variable(["a", "", "bc"], name="words")
    root.grows = tf.Variable([1.0], shape=tf.TensorShape([None]), name="grows")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def forward(x):
        half = tf.cast(root.half, tf.float32)
        y = tf.where(root.flag, root.child(x) + half, x)
        return {"y": y, "words": root.words + "!", "grows": root.grows + 0.0}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "step")])
    def count(step):
        return {"counter": root.counter.assign_add(step)}

    root.forward, root.count = forward, count
    return root, {"serving_default": forward, "count": count}


def requests(np):
    x = np.float32([[1, 2], [3, -4]])
    return [
        ("serving_default", {"x": x}),
        ("count", {"step": np.int64(2)}),
        ("count", {"step": np.int64(5)}),
        ("child", (x,), {}),
    ]
