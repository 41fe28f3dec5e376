"""StaticVocabularyTable with out-of-vocabulary buckets over int64 and string keys, and one with
buckets only.
"""

import os

CLAUSES = ("PRIM-04", "PRIM-07", "PRIM-08", "RES-05")
FEATURES = ("tables", "assets", "strings")


def build(tf, work):
    path = os.path.join(work, "vocab")
    with open(path, "w") as stream:
        stream.write("the\nquick\nbrown\nfox\n")
    index = tf.lookup.TextFileIndex
    root = tf.Module()
    words = tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    numbers = tf.lookup.KeyValueTensorInitializer(
        tf.constant([100, 200], tf.int64), tf.constant([0, 1], tf.int64)
    )
    root.words = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=5)
    root.numbers = tf.lookup.StaticVocabularyTable(
        numbers, num_oov_buckets=2, lookup_key_dtype=tf.int64
    )

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)]
    )
    def lookup(word, number):
        return {"word": root.words.lookup(word), "number": root.numbers.lookup(number)}

    root.lookup = lookup
    return root, lookup


def requests(np):
    word = np.array([b"fox", b"the", b"jumps", b"over"], object)
    return [("serving_default", {"word": word, "number": np.int64([200, 100, 7])})]
