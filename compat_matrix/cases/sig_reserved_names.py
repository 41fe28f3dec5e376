"""Inputs and outputs named like the parts of a JSON request: inputs, instances, b64, outputs,
predictions, error.

A server reads `{"b64": ...}` as a binary string, but it may also mean the only input of a
signature, named `b64`.
"""

CLAUSES = ("SIG-07", "SIG-11", "COMPAT-05")
FEATURES = ("signatures", "names", "strings", "serving")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None, 2], tf.float32)]
    )
    def words(inputs, instances):
        return {"outputs": inputs * root.v, "predictions": instances, "error": inputs - instances}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def inputs(inputs):
        return {"outputs": inputs * root.v}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def binary(b64):
        return {"b64": tf.strings.join([b64, "!"])}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.float32)]
    )
    def named(b64, signature_name):
        return {"b64_bytes": b64, "result": signature_name + 1.0}

    root.functions = [words, inputs, binary, named]
    return root, {
        "serving_default": words,
        "inputs": inputs,
        "b64": binary,
        "signature_name": named,
    }


def requests(np):
    x = np.float32([[1, 2], [-3, 0.5]])
    text = np.array([b"text", b"\x00\xff"], object)
    return [
        ("serving_default", {"inputs": x, "instances": x[::-1].copy()}),
        ("inputs", {"inputs": x}),
        ("b64", {"b64": text[:1]}),
        ("b64", {"b64": np.array([b"dGV4dA==", b"plain"], object)}),
        ("signature_name", {"b64": text, "signature_name": np.float32([1, 2])}),
    ]
