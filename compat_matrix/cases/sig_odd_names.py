"""Signature keys and input names with capitals, digits and underscores, and a TensorSpec that
renames its argument.

The names on the wire are a contract with clients. An input takes its name from the spec, else from
the argument.
"""

CLAUSES = ("SIG-07", "API-03")
FEATURES = ("signatures", "names")


def build(tf, work):
    root = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, name="Input_1"),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.float32, name="zz"),
        ]
    )
    def f(a, B2, _last):
        return {"Sum-1": a + B2, "last/one": _last, "ÄÖ": B2}

    root.f = f
    answer = {"Predict_V2": lambda Input_1, B2, zz: f(Input_1, B2, zz)}
    return root, {"Predict_V2": f}, answer


def requests(np):
    given = {"Input_1": np.float32([1]), "B2": np.float32([2]), "zz": np.float32([3])}
    return [("Predict_V2", given)]
