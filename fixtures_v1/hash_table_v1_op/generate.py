"""The first HashTable op, with a reference to a string pair as its handle, filled from a file and by constants."""

CLAUSES = ("V1-08", "V1-12")
FEATURES = ("tables", "hash_table_v1", "assets", "legacy_init_op")
RUNTIME = "tf1.4"


def generate(tf, rec):
    from tensorflow.python.ops import gen_lookup_ops as ops  # the public classes of 1.4 already make HashTableV2

    def op(name):
        return getattr(ops, name, None) or getattr(ops, "_" + name)  # since 1.7 or so without the underscore

    path = tf.constant(rec.file("words.txt", "zero\none\ntwo\n"), name="words_path")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
    words = tf.placeholder(tf.string, [None], "words")
    ids_table = op("hash_table")(tf.string, tf.int64, shared_name="words_table", name="words_table")
    prices_table = op("hash_table")(tf.int64, tf.float32, name="prices_table")
    # -2: the whole line is the key, -1: the line number is the value.
    fill = op("initialize_table_from_text_file")(ids_table, path, -2, -1, -1, "\t")
    constants = op("initialize_table")(prices_table, tf.constant([0, 2], tf.int64), tf.constant([1.5, -2.5]))
    ids = op("lookup_table_find")(ids_table, words, tf.constant(-1, tf.int64))
    prices = op("lookup_table_find")(prices_table, ids, tf.constant(0.0))
    size = op("lookup_table_size")(ids_table)
    sess = rec.session()
    init = tf.group(fill, constants, name="init_tables")
    sess.run(init)
    rec.export(
        sess,
        {"serving_default": rec.signature({"words": words}, {"ids": ids, "prices": prices, "size": size})},
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        legacy_init_op=init,
    )
    rec.ask("serving_default", {"words": ["two"]})
    rec.ask("serving_default", {"words": ["zero", "seven", "one"]})
