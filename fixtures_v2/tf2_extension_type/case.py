"""A registered type of its own as argument and result of a function."""

CLAUSES = ("PY-05", "FMT-05")
FEATURES = ("extension_types", "functions")


def build(tf, work):
    # A name cannot be registered twice in a process, and `build` is called twice.
    pair = globals().get("PAIR") or globals().setdefault("PAIR", _pair(tf))
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])

    @tf.function
    def total(value):
        return value.first + value.second * root.v

    total(pair(first=tf.zeros([2]), second=tf.ones([2])))

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def f(x):
        return {"y": total(pair(first=x, second=x * 2.0))}

    root.total, root.f = total, f
    return root, f


def _pair(tf):
    class Pair(tf.experimental.ExtensionType):
        __name__ = "fixtures_v2.Pair"
        first: tf.Tensor
        second: tf.Tensor

    return Pair


def requests(np):
    x = np.float32([1, 3])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
