"""One child under two names, a cycle, and a function shared by two objects.

Identity must survive: an assignment through one name is seen through the other.
"""

CLAUSES = ("RP-01", "GOAL-08", "FMT-02")
FEATURES = ("aliases", "cycles")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.left, root.right = tf.Module(), tf.Module()
    root.left.shared = root.right.also_shared = shared = tf.Module()
    shared.v = tf.Variable(1.0)
    shared.parent = root
    root.right.alias_of_v = shared.v
    root.myself = root
    read = tf.function(lambda: shared.v * 2.0, input_signature=[])
    root.left.read = root.right.read = read
    root.right.set = tf.function(
        lambda x: root.right.alias_of_v.assign(x), input_signature=[tf.TensorSpec([], tf.float32)]
    )
    return root, {"read": read, "set": root.right.set}


def requests(np):
    return [
        ("read", {}),
        ("set", {"x": np.float32(8)}),
        ("read", {}),
        ("left.read", (), {}),
        ("right.set", (np.float32(4),), {}),
        ("myself.left.shared.parent.right.read", (), {}),
        ("left.read", (), {}),
    ]
