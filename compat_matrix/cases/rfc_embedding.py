"""RFC example: a text embedding with a vocabulary file, a table and an embedding matrix.

The table tracks its file itself; loading initialises the table without user action, even when the
author's file is gone. `embed` is the only function with a signature, so it becomes the default
signature.
"""

import os

CLAUSES = ("PRIM-01", "PRIM-04", "PRIM-07", "PRIM-08", "IMP-01", "RES-05")
FEATURES = ("tables", "assets", "sparse", "strings", "inferred signature")


def build(tf, work):
    vocabulary = os.path.join(work, "vocab.txt")
    with open(vocabulary, "w") as stream:
        stream.write("hello\nworld\ngood\nmorning\n")

    class Model(tf.Module):
        def __init__(self, dim):
            super().__init__()
            initializer = tf.lookup.TextFileInitializer(
                vocabulary,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=1)
            size = 4 + 1
            self.embeddings = tf.Variable(
                tf.reshape(tf.range(size * dim, dtype=tf.float32), [size, dim])
            )

        def tokenize(self, sentences):
            words = tf.strings.split(sentences).to_sparse()
            return tf.SparseTensor(
                words.indices, self.table.lookup(words.values), words.dense_shape
            )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def embed(self, sentences):
            return tf.nn.embedding_lookup_sparse(
                self.embeddings, self.tokenize(sentences), None, combiner="mean"
            )

    root = Model(8)
    return root, None, {"serving_default": root.embed}


def requests(np):
    sentences = np.array([b"hello world", b"good", b"unknown words good morning"], object)
    return [("serving_default", {"sentences": sentences}), ("embed", (sentences,), {})]
