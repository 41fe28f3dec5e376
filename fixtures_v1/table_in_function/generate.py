"""Tables made inside of functions that the graph calls: one handle is returned, one is shared by name between two functions."""

CLAUSES = ("V1-08", "V1-16", "V1-17")
FEATURES = ("tables", "functions", "main_op")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.15"


def generate(tf, rec):
    raw, v2 = tf.raw_ops, rec.v2()
    strings, numbers = {"key_dtype": tf.string, "value_dtype": tf.int64}, {"key_dtype": tf.int64, "value_dtype": tf.float32}

    @v2.function
    def create():
        return raw.HashTableV2(shared_name="names_in_function", **strings)

    @v2.function
    def create_by_call():
        return create()

    @v2.function
    def fill(handle):
        raw.InitializeTableV2(table_handle=handle, keys=tf.constant(["one", "two"]), values=tf.constant([1, 2], tf.int64))
        return tf.constant(1)

    @v2.function
    def fill_weights():
        handle = raw.HashTableV2(shared_name="weights_in_function", **numbers)
        raw.InitializeTableV2(table_handle=handle, keys=tf.constant([1, 2], tf.int64), values=tf.constant([0.5, 0.25]))
        return tf.constant(1)

    @v2.function
    def weigh(ids):
        handle = raw.HashTableV2(shared_name="weights_in_function", **numbers)
        return raw.LookupTableFindV2(table_handle=handle, keys=ids, default_value=tf.constant(-1.0))

    names = create_by_call()
    init = tf.group(fill(names), fill_weights())
    words = tf.placeholder(tf.string, [None], "words")
    ids = raw.LookupTableFindV2(table_handle=names, keys=words, default_value=tf.constant(-1, tf.int64))
    numbers_in = tf.placeholder(tf.int64, [None], "numbers")
    sess = rec.session()
    sess.run(init)
    signatures = {
        "serving_default": rec.signature({"words": words}, {"ids": ids}),
        "weigh": rec.signature({"numbers": numbers_in}, {"weights": weigh(numbers_in)}),
    }
    rec.export(sess, signatures, main_op=init)
    rec.ask("serving_default", {"words": ["two", "one", "three"]})
    rec.ask("serving_default", {"words": []})
    rec.ask("weigh", {"numbers": [2, 1, 7]})
