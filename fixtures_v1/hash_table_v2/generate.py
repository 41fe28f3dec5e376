"""HashTableV2 from constant keys and values (strings to int64 and int64 to floats), initialised by main_op."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08",)
FEATURES = ("tables", "hash_table_v2", "main_op")
RUNTIME = "tf1.15"


def generate(tf, rec):
    tables = lookup(tf)
    names = tables.HashTable(tables.KeyValueTensorInitializer(["one", "two", "three"], tf.constant([1, 2, 3], tf.int64)), -1)
    weights = tables.HashTable(
        tables.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), tf.constant([0.5, 0.25])), -1.0, name="weights"
    )
    words = tf.placeholder(tf.string, [None], "words")
    ids = names.lookup(words)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {"serving_default": rec.signature({"words": words}, {"ids": ids, "weights": weights.lookup(ids), "size": names.size()})},
        main_op=tf.tables_initializer(),
    )
    rec.ask("serving_default", {"words": ["two"]})
    rec.ask("serving_default", {"words": ["three", "four", "one"]})
