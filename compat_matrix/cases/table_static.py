"""StaticHashTables made of tensors: string to int64, int64 to string, int64 to float, with default
values.
"""

CLAUSES = ("PRIM-04", "RES-04", "RP-08", "RP-09")
FEATURES = ("tables", "strings")


def build(tf, work):
    root = tf.Module()
    words = tf.constant(["red", "green", "größe"])
    numbers = tf.constant([10, -20, 2**40], tf.int64)

    def table(keys, values, default):
        return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)

    root.ids = table(words, numbers, -1)
    root.words = table(numbers, words, "?")
    root.weights = table(numbers, tf.constant([0.5, 1.5, 2.5]), float("inf"))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lookup(word):
        ids = root.ids.lookup(word)
        return {
            "id": ids,
            "word": root.words.lookup(ids),
            "weight": root.weights.lookup(ids),
            "size": root.ids.size(),
        }

    root.lookup = lookup
    return root, lookup


def requests(np):
    word = np.array(["green".encode(), "größe".encode(), b"blue"], object)
    return [("serving_default", {"word": word}), ("lookup", (word,), {})]
