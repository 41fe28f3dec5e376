"""Keys that JSON, URLs and proto text must escape: quotes, backslashes, line ends, control characters, an emoji, `</script>`."""

CLAUSES = ("V1-01", "V1-02")
FEATURES = ("names", "unicode", "serving")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    y = tf.placeholder(tf.float32, [None], "y")
    total = tf.add(x, y)
    sess = rec.session()
    inputs = {'say "x"': x, "back\\slash\n": y}
    outputs = {"tab\t\x01": total, "</script>\u2028": tf.negative(y), "\U0001f600": tf.identity(x), "{instances}": y * 2.0}
    keys = ["serving_default", 'quo"te', "a\\b", "one\ntwo", "%2F?&#", "\U0001f600"]
    rec.export(sess, dict.fromkeys(keys, rec.signature(inputs, outputs)))
    for key in keys:
        rec.ask(key, {'say "x"': [1.0, -2.0], "back\\slash\n": [2.0, 0.5]})
