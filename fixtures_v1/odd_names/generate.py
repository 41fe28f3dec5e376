"""Signature, input and output keys with spaces, slashes, colons and letters outside ASCII, and an empty one."""

CLAUSES = ("V1-01", "V1-02")
FEATURES = ("names", "unicode")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "A.-/_x1")
    y = tf.placeholder(tf.float32, [None], "y")
    total = tf.add(x, y, name="Total_")
    sess = rec.session()
    keys = ["with space", "größe", "日本語", "a/b:c", "", "serving_default", "class", "Serving_Default"]
    signature = rec.signature({"ein gabe": x, "ü:0": y}, {"out put/1": total, "日本": tf.negative(y)})
    rec.export(sess, dict.fromkeys(keys, signature))
    for key in keys:
        rec.ask(key, {"ein gabe": [1.0], "ü:0": [2.0]})
    rec.ask("größe", {"ein gabe": [1.0, 3.0], "ü:0": [2.0, -5.0]})
