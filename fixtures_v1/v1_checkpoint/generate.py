"""A checkpoint in the V1 format (one table file, no index): written by a Saver handed to SavedModelBuilder."""

CLAUSES = ("V1-08",)
FEATURES = ("v1_checkpoint", "ref_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12"  # the builder takes no saver before


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", initializer=rec.exact(2, 3))
    sess = rec.initialized_session()
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": tf.matmul(x, w)})}, saver=saver)
    rec.ask("serving_default", {"x": rec.exact(1, 2)})
    rec.ask("serving_default", {"x": rec.exact(3, 2)})
