"""Index tables from a vocabulary file, both ways: ids with out-of-vocabulary buckets, and strings back from ids."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08", "V1-12")
FEATURES = ("tables", "assets", "oov_buckets", "main_op", "hash_table_v2")
RUNTIME = "tf1.15"


def generate(tf, rec):
    path = rec.file("vocabulary.txt", "apple\nbanana\ncherry\nÄpfel\n")
    words = tf.placeholder(tf.string, [None], "words")
    ids = tf.placeholder(tf.int64, [None, None], "ids")
    index = lookup(tf).index_table_from_file(path, num_oov_buckets=3)
    back = lookup(tf).index_to_string_table_from_file(path, default_value="<unknown>")
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"words": words}, {"ids": index.lookup(words)}),
            "decode": rec.signature({"ids": ids}, {"words": back.lookup(ids)}),
        },
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        main_op=tf.tables_initializer(),
    )
    rec.ask("serving_default", {"words": ["banana"]})
    rec.ask("serving_default", {"words": ["cherry", "Äpfel", "durian", "", "elderberry"]})
    rec.ask("serving_default", {"words": []})
    rec.ask("decode", {"ids": [[0, 1], [3, 99]]})
