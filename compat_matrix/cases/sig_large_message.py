"""A string of 5 MiB in and out, the size of a picture: more than the 4 MiB that gRPC accepts as one
message by default.
"""

CLAUSES = ("SIG-17", "COMPAT-05")
FEATURES = ("signatures", "strings", "large", "serving")
CHECKS = ("load", "values")


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def grow(image_bytes):
        return {
            "image_bytes": tf.strings.join([image_bytes, "end"]),
            "size": tf.strings.length(image_bytes),
        }

    root.grow = grow
    return root, grow


def requests(np):
    return [
        (
            "serving_default",
            {"image_bytes": np.array([b"\x89\x00\xff " * (5 << 18), b"small"], object)},
        )
    ]
