"""MutableHashTable and MutableDenseHashTable whose content is part of the checkpoint, with lookup and insert signatures."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-17", "RES-15")
FEATURES = ("tables", "mutable_tables", "stateful", "checkpointed_tables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.13"  # deleted_key
STATEFUL = True


def generate(tf, rec):
    tables = lookup(tf)
    table = tables.MutableHashTable(tf.string, tf.int64, -1, name="mutable")
    vectors = tables.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0], name="vectors")
    dense = tables.MutableDenseHashTable(
        tf.int64, tf.float32, default_value=-1.0, empty_key=-10, deleted_key=-11, initial_num_buckets=8, name="dense"
    )
    words = tf.placeholder(tf.string, [None], "words")
    ids = tf.placeholder(tf.int64, [None], "ids")
    insert = table.insert(words, ids)
    with tf.control_dependencies([insert]):
        inserted = tf.shape(words)[0]
    with tf.control_dependencies([insert]):
        size_after = table.size()
    found = table.lookup(words)
    sess = rec.session()
    sess.run(
        [
            table.insert(tf.constant(["one", "two", "three"]), tf.constant([1, 2, 3], tf.int64)),
            vectors.insert(tf.constant([1, 3], tf.int64), tf.constant([[1.0, 0.5], [3.0, -0.5]])),
            dense.insert(tf.constant([1, 2], tf.int64), tf.constant([10.0, 20.0])),
        ]
    )
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"words": words}, {"ids": found, "vectors": vectors.lookup(found), "dense": dense.lookup(found)}
            ),
            "insert": rec.signature({"words": words, "ids": ids}, {"inserted": inserted, "size": size_after}),
            "sizes": rec.signature({}, {"mutable": table.size(), "dense": dense.size()}),
        },
    )
    rec.ask("sizes", {})
    rec.ask("serving_default", {"words": ["one", "three", "four"]})
    rec.ask("insert", {"words": ["four"], "ids": [2]})
    rec.ask("serving_default", {"words": ["four", "two"]})
    rec.ask("sizes", {})
