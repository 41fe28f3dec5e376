"""Two different files of one basename and one file used twice as assets."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-12", "RES-05")
FEATURES = ("tables", "assets", "main_op", "asset_names")
RUNTIME = "tf1.15"


def generate(tf, rec):
    words = tf.placeholder(tf.string, [None], "words")
    index = lookup(tf).index_table_from_file
    left = index(rec.file("left/vocabulary.txt", "a\nb\n"), default_value=-1, name="left")
    right = index(rec.file("right/vocabulary.txt", "b\nc\na\n"), default_value=-2, name="right")
    again = lookup(tf).index_to_string_table_from_file("left/vocabulary.txt", default_value="?", name="again")
    ids = left.lookup(words)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"words": words}, {"left": ids, "right": right.lookup(words), "again": again.lookup(ids)}
            )
        },
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        main_op=tf.tables_initializer(),
    )
    rec.ask("serving_default", {"words": ["a"]})
    rec.ask("serving_default", {"words": ["b", "c", "d"]})
