"""Defaults, keyword-only arguments, `*args` and `**kwargs` bind as in the original.

The file stores the full Python signature; a loader has to apply it before it picks a trace.
"""

CLAUSES = ("PY-09", "PY-06", "FMT-05")
FEATURES = ("functions", "arguments")


def build(tf, work):
    root = tf.Module()

    @tf.function
    def defaults(x, scale=2.0, *, shift=None, negate=False):
        out = x * scale
        if shift is not None:
            out = out + shift
        return -out if negate else out

    @tf.function
    def variadic(first, *rest, **named):
        return tf.add_n([first, *rest]) + sum(
            (i + 1) * named[key] for i, key in enumerate(sorted(named))
        )

    x = tf.constant(1.0)
    defaults(x)
    defaults(x, 4.0, negate=True)
    defaults(x, shift=x)
    variadic(x, x, x, b=x, a=x)
    variadic(x)
    root.defaults, root.variadic = defaults, variadic
    return root


def requests(np):
    x, y = np.float32(3), np.float32(100)
    return [
        ("defaults", (x,), {}),
        ("defaults", (x, 2.0), {"negate": False}),
        ("defaults", (), {"x": x, "scale": 4.0, "negate": True}),
        ("defaults", (x,), {"shift": y}),
        ("variadic", (x, x, y), {"a": x, "b": y}),
        ("variadic", (x,), {}),
    ]
