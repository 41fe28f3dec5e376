"""Attributes with default values kept in the graph (strip_default_attrs=False), as TF 1.x wrote by default."""

CLAUSES = ("COMPAT-02",)
FEATURES = ("default_attrs", "ref_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.6"  # strip_default_attrs


def generate(tf, rec, strip=False):
    x = tf.placeholder(tf.float32, [None, 4, 4, 1], "x")
    kernel = tf.get_variable("kernel", initializer=rec.exact(2, 2, 1, 2))
    y = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="VALID", name="conv")  # data_format, dilations, use_cudnn_on_gpu
    y = tf.reduce_sum(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "SAME"), [1, 2])
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": y})}, strip_default_attrs=strip)
    rec.ask("serving_default", {"x": rec.exact(1, 4, 4, 1)})
    rec.ask("serving_default", {"x": rec.exact(3, 4, 4, 1)})
