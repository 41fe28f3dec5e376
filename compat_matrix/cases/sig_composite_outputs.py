"""Sparse and ragged outputs of a signature.

Not in the RFC; shipped TensorFlow stores them as composite outputs, which session readers have to
take apart.
"""

CLAUSES = ("SIG-11",)
FEATURES = ("signatures", "sparse", "ragged", "strings")
REQUIRES = "tensorflow>=2.5"  # older releases allow only tensors in a signature


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def split(text):
        words = tf.strings.split(text)
        return {"ragged": words, "sparse": words.to_sparse(), "count": words.row_lengths()}

    root.split = split
    return root, split


def requests(np):
    text = np.array([b"one two", b"", b"three"], object)
    return [("serving_default", {"text": text}), ("split", (text,), {})]
