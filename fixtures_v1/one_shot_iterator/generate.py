"""A OneShotIterator, whose dataset is made and mapped by functions in attributes, beside a signature without it."""

CLAUSES = ("V1-16", "V1-17")
FEATURES = ("iterators", "functions")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.8"
STATEFUL = True


def generate(tf, rec):
    data = tf.data.Dataset.range(3).map(lambda number: tf.cast(number * 10, tf.float32))
    element = (
        tf.data.make_one_shot_iterator(data).get_next()
        if hasattr(tf.data, "make_one_shot_iterator")
        else (data.make_one_shot_iterator().get_next())
    )
    x = tf.placeholder(tf.float32, [None], "x")
    sess = rec.session()
    signatures = {
        "serving_default": rec.signature({"x": x}, {"y": x + 1.0}),
        "next": rec.signature({"x": x}, {"y": x + element}),
    }
    rec.export(sess, signatures)
    rec.ask("serving_default", {"x": [1.0, 2.0]})
    rec.ask("next", {"x": [1.0, 2.0]})
    rec.ask("next", {"x": [1.0]})
    rec.ask("next", {"x": [1.0]})
