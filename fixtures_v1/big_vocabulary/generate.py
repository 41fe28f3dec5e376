"""A vocabulary file of 20,000 lines as an asset, with a vocab_size smaller than the file."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08", "V1-12")
FEATURES = ("tables", "assets", "main_op", "vocabulary")
RUNTIME = "tf1.14"


def generate(tf, rec):
    path = rec.file("vocabulary.txt", "".join("word{}\n".format(index) for index in range(20000)))
    words = tf.placeholder(tf.string, [None], "words")
    table = lookup(tf).index_table_from_file(path, num_oov_buckets=1, vocab_size=15000)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {"serving_default": rec.signature({"words": words}, {"ids": table.lookup(words), "size": table.size()})},
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        main_op=tf.tables_initializer(),
    )
    rec.ask("serving_default", {"words": ["word14999"]})
    rec.ask("serving_default", {"words": ["word0", "word15000", "word19999", "word7777"]})
