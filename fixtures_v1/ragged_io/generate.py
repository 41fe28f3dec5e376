"""A ragged tensor into and out of a signature, as composite_tensor TensorInfo (TF 1.15)."""

CLAUSES = ("V1-02",)
FEATURES = ("ragged_io", "composite_tensor")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.15"  # a ragged tensor in a signature


def generate(tf, rec):
    r = tf.ragged.placeholder(tf.float32, 1, [])
    flat = tf.placeholder(tf.int64, [None], "flat")
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"r": r}, {"doubled": r * 2.0, "sums": tf.reduce_sum(r, axis=1)}),
            "ranges": rec.signature({"n": flat}, {"ranges": tf.ragged.range(flat)}),
        },
    )
    rec.ask("serving_default", {"r": ([1.0, 2.0, 3.0], [0, 2, 2, 3])})
    rec.ask("serving_default", {"r": ([0.5], [0, 1])})
    rec.ask("ranges", {"n": [3, 0, 2]})
