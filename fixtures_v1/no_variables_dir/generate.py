"""Arithmetic alone, no variables: several dtypes in one signature, reductions, casts, a top_k and a one_hot."""

CLAUSES = ("V1-01",)
FEATURES = ("no_variables", "casts")
RUNTIME = "tf1.4"


def generate(tf, rec):
    x = tf.placeholder(tf.int32, [None, 4], "x")
    mask = tf.placeholder(tf.bool, [None, 4], "mask")
    kept = tf.where(mask, x, tf.zeros_like(x))
    values, indices = tf.nn.top_k(kept, 2)
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"x": x, "mask": mask},
                {
                    "sum": tf.reduce_sum(kept, 1),
                    "mean": tf.reduce_mean(tf.to_double(kept), 1),
                    "top": values,
                    "where": indices,
                    "one_hot": tf.one_hot(indices, 4, dtype=tf.uint8),
                    "any": tf.reduce_any(mask, 1),
                    "half": tf.cast(kept, tf.float16),
                },
            )
        },
    )
    rec.ask("serving_default", {"x": [[1, 2, 3, 4]], "mask": [[True, False, True, False]]})
    rec.ask("serving_default", {"x": [[9, -2, 3, 9], [0, 0, 0, 1]], "mask": [[True] * 4, [False] * 4]})
