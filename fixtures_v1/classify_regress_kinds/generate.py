"""Classify with classes alone, scores alone and both, regress to a vector and to a column, all over one tensor of tf.Examples."""

CLAUSES = ("V1-01", "V1-02")
FEATURES = ("builder", "parse_example", "classify_regress", "multi_inference", "serving")
RUNTIME = "tf1.15"


def generate(tf, rec):
    serialized = tf.placeholder(tf.string, [None], "input_example_tensor")
    parsed = tf.parse_example(
        serialized,
        {
            "query": tf.FixedLenFeature([], tf.string),
            "price": tf.FixedLenFeature([], tf.float32),
            "size": tf.FixedLenFeature([2], tf.float32, default_value=[0.5, 0.25]),
        },
    )
    w = tf.get_variable("w", initializer=tf.constant(rec.exact(2, 3)), use_resource=True)
    scores = tf.matmul(parsed["size"], w) + tf.expand_dims(parsed["price"], 1)
    labels = tf.tile(tf.constant([["big", "größe", "\x00"]]), [tf.shape(scores)[0], 1])
    # The labels of one row differ from those of the next.
    classes = tf.string_join([labels, tf.tile(tf.expand_dims(parsed["query"], 1), [1, 3])], separator=" ")
    sess = rec.initialized_session()
    regress, classify = "tensorflow/serving/regress", "tensorflow/serving/classify"
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"inputs": serialized}, {"classes": classes, "scores": scores}, classify),
            "classes": rec.signature({"inputs": serialized}, {"classes": classes}, classify),
            "scores": rec.signature({"inputs": serialized}, {"scores": scores}, classify),
            "vector": rec.signature({"inputs": serialized}, {"outputs": scores[:, 0]}, regress),
            "column": rec.signature({"inputs": serialized}, {"outputs": scores[:, 1:2]}, regress),
            "price": rec.signature({"inputs": serialized}, {"outputs": parsed["price"]}, regress),
        },
    )
    # The query is the same in all rows of a request: it can be sent once, as the context of the examples.
    rows = [
        rec.example(query=["pizza"], price=[1.5], size=[2.0, 1.0]),
        rec.example(query=["pizza"], price=[-0.25]),
        rec.example(query=["pizza"], price=[8.0], size=[0.0, -4.0]),
    ]
    for key in ("serving_default", "classes", "scores", "vector", "column", "price"):
        rec.ask(key, {"inputs": rows})
        rec.ask(key, {"inputs": rows[2:]})
