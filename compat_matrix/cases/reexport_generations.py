"""Third generation: a model with a variable, a table and its asset, loaded and saved twice before.

The answers are those of the very first object; every generation but the last is deleted.
"""

import os

CLAUSES = ("REX-03", "RES-13", "GOAL-13", "RES-15", "FMT-10")
FEATURES = ("re-export", "tables", "assets", "state")
REQUIRES = "tensorflow>=2.8"  # tf.lookup.experimental.MutableHashTable


def build(tf, work):
    path = os.path.join(work, "vocab.txt")
    with open(path, "w") as stream:
        stream.write("a\nb\n")
    index = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    first = tf.Module()
    first.v = tf.Variable(10, dtype=tf.int64)
    first.table = tf.lookup.StaticHashTable(initializer, -1)
    first.memory = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -5)
    first.memory.insert(tf.constant([0], tf.int64), tf.constant([77], tf.int64))
    first.f = tf.function(
        lambda word: {
            "id": first.table.lookup(word) * first.v,
            "memory": first.memory.lookup(first.table.lookup(word)),
        },
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    model = first
    for generation in ("one", "two"):
        folder = os.path.join(work, generation)
        tf.saved_model.save(model, folder, signatures={"lookup": model.f})
        model = tf.saved_model.load(folder)
    return model, {"lookup": model.f}, {"lookup": first.f}


def requests(np):
    word = np.array([b"b", b"a", b"c"], object)
    return [("lookup", {"word": word}), ("f", (word,), {})]
