"""A SignatureDef that says of an output another shape than the graph has: sessions answer, tf.saved_model.load refuses it."""

CLAUSES = ("V1-01", "COMPAT-02")
FEATURES = ("signatures", "false_tensor_info", "version_skew")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [2, 3], "x")
    false = rec.signature({"x": x}, {"y": tf.identity(x) + 1.0})
    shape = false.outputs["y"].tensor_shape
    del shape.dim[1]
    shape.dim[0].size = 4
    rec.export(rec.session(), {"serving_default": false})
    rec.ask("serving_default", {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]})
