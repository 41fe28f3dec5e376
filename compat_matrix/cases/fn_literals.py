"""bool, str, int, float and None as arguments, alone and nested, each choosing a trace.

The literals are in the file, and a call must find the trace of an equal one.
"""

CLAUSES = ("PY-06", "FMT-04", "FMT-05")
FEATURES = ("functions", "literals")


def build(tf, work):
    root = tf.Module()

    @tf.function
    def describe(x, option):
        return {"text": tf.constant(repr(option)), "x": x * 2.0}

    @tf.function
    def nested(x, options):
        return x + options["sizes"][1] if options["name"] == "plus" else x - options["sizes"][1]

    x = tf.constant(1.0)
    for option in ("", "größe", 0, -7, 2**40, 0.5, float("inf"), None):
        describe(x, option)
    nested(x, {"name": "plus", "sizes": (1, 2), "flag": None})
    nested(x, {"name": "minus", "sizes": (1, 2), "flag": None})
    root.describe, root.nested = describe, nested
    return root


def requests(np):
    x = np.float32(3)
    options = ("", "größe", 0, -7, 2**40, 0.5, float("inf"), None)
    named = [{"name": name, "sizes": (1, 2), "flag": None} for name in ("plus", "minus")]
    return [("describe", (x, option), {}) for option in options] + [
        ("nested", (x, option), {}) for option in named
    ]
