"""A SignatureDef that says of an input another shape than the graph, and of one a shape that the graph leaves open."""

CLAUSES = ("V1-01", "V1-16")
FEATURES = ("signatures", "false_tensor_info")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    rows = tf.placeholder(tf.float32, [None, None], "rows")
    false = rec.signature({"x": x}, {"y": x + 1.0})
    false.inputs["x"].tensor_shape.dim.add(size=7)
    exact = rec.signature({"rows": rows}, {"sums": tf.reduce_sum(rows, 1)})
    exact.inputs["rows"].tensor_shape.dim[1].size = 2
    rec.export(rec.session(), {"serving_default": false, "exact": exact})
    rec.ask("serving_default", {"x": [1.0, 2.0]})
    rec.ask("exact", {"rows": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
