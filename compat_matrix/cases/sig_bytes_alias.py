"""Binary strings in and out: a server that answers in JSON writes outputs whose names end in
`_bytes` in base64.

The model also gives the same bytes under a name without that ending, and a text under a name with
it.
"""

CLAUSES = ("SIG-07", "SIG-11", "COMPAT-05")
FEATURES = ("signatures", "strings", "names", "serving")


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def mixed(image_bytes):
        return {
            "image_bytes": tf.reverse(image_bytes, [0]),
            "image": image_bytes,
            "size": tf.strings.length(image_bytes),
        }

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.string)])
    def text(words):
        return {"joined_bytes": tf.strings.reduce_join(words, 1), "words": words}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def one(x_bytes):
        return {"only_bytes": x_bytes}

    root.functions = [mixed, text, one]
    return root, {"serving_default": mixed, "text": text, "one": one}


def requests(np):
    return [
        (
            "serving_default",
            {"image_bytes": np.array([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0\x00", b""], object)},
        ),
        ("serving_default", {"image_bytes": np.array([b'{"b64": "AA=="}'], object)}),
        ("text", {"words": np.array([[b"a", b"\x00"], ["größe".encode(), b"\xc3"]], object)}),
        ("text", {"words": np.array([[b"plain", b"text"]], object)}),
        ("one", {"x_bytes": np.array(b"\xf0\x28\x8c\x28", object)}),
    ]
