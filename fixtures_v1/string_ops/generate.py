"""String inputs of rank 0, 1 and 2 with zero bytes, UTF-8 and empty strings; split, regex, hash, base64, join."""

CLAUSES = ("V1-01",)
FEATURES = ("string_io", "no_variables")
RUNTIME = "tf1.14"
REQUIRES = "tensorflow>=1.12"  # tf.strings


def generate(tf, rec):
    words = tf.placeholder(tf.string, [None, None], "words")
    line = tf.placeholder(tf.string, [], "line")
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"words": words},
                {
                    "echo": tf.identity(words),
                    "lengths": tf.strings.length(words),
                    "chars": tf.strings.length(words, unit="UTF8_CHAR"),
                    "buckets": tf.string_to_hash_bucket_fast(words, 1000),
                    "replaced": tf.strings.regex_replace(words, "[aeiou]", "_"),
                    "coded": tf.encode_base64(words),
                    "joined": tf.strings.reduce_join(words, axis=1, separator="+"),
                },
            ),
            "split": rec.signature(
                {"line": line},
                {"tokens": tf.string_split([line], " ").values, "number": tf.strings.to_number(tf.strings.substr(line, 0, 2))},
            ),
        },
    )
    rec.ask("serving_default", {"words": [["plain"]]})
    rec.ask("serving_default", {"words": [[b"\x00zero\x00", "größe"], ["", b"tail\x00"]]})
    rec.ask("split", {"line": "42 is  the answer"})
