"""Signature and variable shapes: scalar, empty, partly unknown, unknown rank, rank 7."""

CLAUSES = ("V1-02",)
FEATURES = ("shapes", "ref_variables", "resource_variables")
RUNTIME = "tf1.15"


def generate(tf, rec):
    scalar = tf.placeholder(tf.float32, [], "scalar")
    partial = tf.placeholder(tf.float32, [None, 2, None], "partial")
    unknown = tf.placeholder(tf.float32, None, "unknown")
    fixed = tf.placeholder(tf.float32, [2, 0, 3], "fixed")
    zero = tf.get_variable("zero", initializer=tf.constant(3.0))
    empty = tf.get_variable("empty", initializer=tf.zeros([0, 4]), use_resource=True)
    deep = tf.get_variable("deep", initializer=rec.exact(1, 2, 1, 2, 1, 2, 1))
    # A variable whose shape is not known to the graph.
    loose = tf.get_variable("loose", initializer=tf.placeholder_with_default(rec.exact(3), None), validate_shape=False)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"scalar": scalar}, {"y": scalar + zero}),
            "partial": rec.signature({"x": partial}, {"y": partial * 2.0, "shape": tf.shape(partial)}),
            "unknown": rec.signature({"x": unknown}, {"y": unknown + 1.0, "rank": tf.rank(unknown)}),
            "fixed": rec.signature({"x": fixed}, {"y": tf.reduce_sum(fixed, 1)}),
            "variables": rec.signature(
                {},
                {
                    name: tf.identity(value)
                    for name, value in (("zero", zero), ("empty", empty), ("deep", deep), ("loose", loose))
                },
            ),
        },
    )
    rec.ask("serving_default", {"scalar": 1.5})
    rec.ask("partial", {"x": rec.exact(1, 2, 3)})
    rec.ask("partial", {"x": rec.exact(2, 2, 0)})
    rec.ask("unknown", {"x": 4.0})
    rec.ask("unknown", {"x": rec.exact(1, 2, 1, 2)})
    rec.ask("fixed", {"x": rec.empty(2, 0, 3)})
    rec.ask("variables", {})
