"""A main_op that fills a table and assigns a local variable from a restored one."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-08", "V1-09")
FEATURES = ("tables", "main_op", "local_variables")
RUNTIME = "tf1.13"


def generate(tf, rec):
    tables = lookup(tf)
    weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0, 4.0]))
    total = tf.get_variable("total", initializer=tf.constant(-1.0), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    table = tables.HashTable(tables.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([0, 1, 2], tf.int64)), 0)
    words = tf.placeholder(tf.string, [None], "words")
    y = tf.gather(weights, table.lookup(words)) / total
    # The order matters: the restored weights are read here, so this op must run after the restore.
    fill = table.initializer if hasattr(table, "initializer") else table.init  # as it was called at first
    init = tf.group(fill, total.assign(tf.reduce_sum(weights)), name="custom_main_op")
    sess = rec.session()
    sess.run(tf.global_variables_initializer())
    sess.run(weights.assign([4.0, 8.0, 4.0]))
    sess.run(init)
    rec.export(sess, {"serving_default": rec.signature({"words": words}, {"y": y})}, main_op=init)
    rec.ask("serving_default", {"words": ["b"]})
    rec.ask("serving_default", {"words": ["c", "nope", "a"]})
