"""Tables and a variable set by legacy_init_op, with two vocabulary files and a key column chosen from a TSV file."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08", "V1-12")
FEATURES = ("tables", "assets", "legacy_init_op", "hash_table_v2", "local_variables")
RUNTIME = "tf1.8"


def generate(tf, rec):
    tables = lookup(tf)
    tsv = rec.file("prices.tsv", "apple\t100\t1\nbanana\t250\t2\n")
    prices = tables.HashTable(tables.TextFileInitializer(tsv, tf.string, 0, tf.int64, 1, delimiter="\t"), -1)
    index = tables.index_table_from_file(rec.file("names.txt", "apple\nbanana\n"), default_value=-7)
    words = tf.placeholder(tf.string, [None], "words")
    loaded = tf.get_variable("loaded", initializer=tf.constant(0), collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    init = tf.group(tf.tables_initializer(), loaded.assign(42), name="legacy_init_op")
    sess = rec.session()
    sess.run(init)
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"words": words}, {"prices": prices.lookup(words), "ids": index.lookup(words), "loaded": tf.identity(loaded)}
            )
        },
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        legacy_init_op=init,
    )
    rec.ask("serving_default", {"words": ["apple"]})
    rec.ask("serving_default", {"words": ["pear", "banana"]})
