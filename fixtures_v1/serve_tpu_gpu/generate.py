"""Three MetaGraphs, `serve`, `serve gpu` and `serve tpu`, with different graphs and signatures and one shared checkpoint."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-04", "V1-05", "V1-07")
FEATURES = ("multi_metagraph", "tag_sets", "assets", "resource_variables")
RUNTIME = "tf1.14"


def generate(tf, rec):
    def variables():
        names = ("kernel", "bias", "tpu_scale")
        return [
            tf.get_variable(name, initializer=value, use_resource=True)
            for name, value in zip(names, (rec.exact(2, 3), rec.exact(3), rec.exact(1)))
        ]

    for tags in (("serve",), ("serve", "gpu"), ("serve", "tpu")):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 2], "x")
            kernel, bias, scale = variables()
            y = tf.matmul(x, kernel)
            outputs = {"y": y + bias}
            kwargs = {}
            if "gpu" in tags:
                outputs = {"y": tf.transpose(y + bias)}
            if "tpu" in tags:
                outputs = {"y": (y + bias) * scale, "low": tf.cast(tf.cast(y, tf.bfloat16), tf.float32)}
            signatures = {"serving_default": rec.signature({"x": x}, outputs)}
            if tags == ("serve",):
                words = tf.placeholder(tf.string, [None], "words")
                table = lookup(tf).index_table_from_file(rec.file("vocabulary.txt", "a\nb\n"))
                signatures["ids"] = rec.signature({"words": words}, {"ids": table.lookup(words)})
                kwargs = {
                    "assets_collection": tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                    "main_op": tf.tables_initializer(),
                }
            rec.add(rec.initialized_session(), signatures, tags=tags, **kwargs)
    rec.save()
    for tags in (("serve",), ("serve", "gpu"), ("serve", "tpu")):
        rec.ask("serving_default", {"x": rec.exact(1, 2)}, tags=tags)
        rec.ask("serving_default", {"x": rec.exact(4, 2)}, tags=tags)
    rec.ask("ids", {"words": ["b", "c", "a"]})
