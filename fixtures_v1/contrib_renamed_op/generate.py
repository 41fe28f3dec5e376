"""GatherTree of tf.contrib.seq2seq: the op was later renamed to Addons>GatherTree."""

CLAUSES = ("COMPAT-02",)
FEATURES = ("contrib_op", "unknown_op")
RUNTIME = "tf1.13"
REQUIRES = "tensorflow>=1.8,<2"  # an earlier gather_tree takes no end token; tf.contrib went with TensorFlow 2.0


def generate(tf, rec):
    step_ids = tf.placeholder(tf.int32, [None, None, None], "step_ids")
    parents = tf.placeholder(tf.int32, [None, None, None], "parents")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    beams = tf.contrib.seq2seq.gather_tree(step_ids, parents, lengths, 10)
    sess = rec.session()
    rec.export(
        sess, {"serving_default": rec.signature({"step_ids": step_ids, "parents": parents, "lengths": lengths}, {"beams": beams})}
    )
    rec.ask(
        "serving_default",
        {"step_ids": [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], "parents": [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], "lengths": [3]},
    )
