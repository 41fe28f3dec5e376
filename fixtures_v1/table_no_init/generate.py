"""A table exported without any init op: the session loader leaves it empty, so one signature fails and the other works."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08",)
FEATURES = ("tables", "no_init_op", "assets")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12"  # tf.strings.length


def generate(tf, rec):
    table = lookup(tf).index_table_from_file(rec.file("vocabulary.txt", "x\ny\n"), default_value=-1)
    words = tf.placeholder(tf.string, [None], "words")
    lengths = tf.strings.length(words)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"words": words}, {"ids": table.lookup(words)}),
            "lengths": rec.signature({"words": words}, {"lengths": lengths}),
        },
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
    )
    rec.ask("serving_default", {"words": ["y", "z"]}, loaded_error="Table not initialized")
    rec.ask("lengths", {"words": ["y", "four"]})
