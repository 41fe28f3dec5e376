"""A function compiled by XLA inside an ordinary one.

The attribute that asks for compilation has been stored since TF 2.1, `jit_compile` of the
FunctionSpec since 2.4.
"""

CLAUSES = ("FN-01", "RP-07")
FEATURES = ("functions", "xla")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    release = tuple(int(part) for part in tf.__version__.split(".")[:2])
    keyword = "jit_compile" if release >= (2, 5) else "experimental_compile"
    spec = tf.TensorSpec([2], tf.float32, "x")

    @tf.function(input_signature=[spec], **{keyword: True})
    def compiled(x):
        return x * root.v

    @tf.function(input_signature=[spec], **{keyword: False})
    def f(x):
        return {"y": compiled(x) + 1.0}

    root.compiled, root.f = compiled, f
    return root, f


def requests(np):
    x = np.float32([1, 3])
    return [("serving_default", {"x": x})]
