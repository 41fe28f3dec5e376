"""One MetaGraph without tags beside one with an unusual tag, sharing a checkpoint."""

CLAUSES = ("V1-05", "V1-07")
FEATURES = ("multi_metagraph", "empty_tags", "tag_sets", "ref_variables")
RUNTIME = "tf1.15"


def generate(tf, rec):
    for tags, factor in (((), 2.0), (("my tag é",), -2.0)):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None], "x")
            a = tf.get_variable("a", initializer=1.5)
            signatures = {"default": rec.signature({"x": x}, {"y": x * a * factor})}
            rec.add(rec.initialized_session(), signatures, tags=tags)
    rec.save()
    for tags in ((), ("my tag é",)):
        rec.ask("default", {"x": [1.0, 4.0]}, tags=tags)
