"""String functions: unicode, regular expressions, NUL bytes, joins and number formatting."""

CLAUSES = ("RP-07", "SIG-17")
FEATURES = ("strings", "unicode", "ops")


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def process(text):
        return {
            "upper": tf.strings.upper(text, encoding="utf-8"),
            "codes": tf.strings.unicode_decode(text, "UTF-8").to_tensor(-1),
            "digits": tf.strings.regex_replace(text, r"[^0-9]+", "#"),
            "bytes": tf.strings.length(text),
            "chars": tf.strings.length(text, unit="UTF8_CHAR"),
            "joined": tf.strings.reduce_join(text, separator="\0"),
            "hash": tf.strings.to_hash_bucket_fast(text, 1000),
            "substr": tf.strings.substr(text, 1, 2, unit="UTF8_CHAR"),
        }

    root.process = process
    return root, process


def requests(np):
    text = np.array(["größe 42".encode(), "日本語".encode(), b"a\x00b7\x00"], object)
    return [("serving_default", {"text": text}), ("process", (text,), {})]
