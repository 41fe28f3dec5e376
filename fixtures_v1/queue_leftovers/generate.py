"""A training input pipeline left in the graph: queues, queue runners, a dataset iterator, an optimizer and its slots."""

CLAUSES = ("V1-08", "V1-10")
FEATURES = ("queues", "iterators", "optimizer_slots", "train_op", "ref_variables", "summaries")
RUNTIME = "tf1.8"


def generate(tf, rec):
    names = tf.train.string_input_producer([rec.file("data.csv", "1,2\n3,4\n")], num_epochs=1)
    _, line = tf.TextLineReader().read(names)
    batch = tf.train.batch(tf.decode_csv(line, [[0.0], [0.0]]), 2)
    iterator = tf.data.Dataset.range(5).make_initializable_iterator(shared_name="leftover")
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder_with_default(batch[0], [None], "x")
    w = tf.get_variable("w", initializer=rec.exact(1))
    y = tf.multiply(x, w, name="y")
    loss = tf.losses.mean_squared_error(batch[1], y)
    tf.summary.scalar("loss", loss)
    tf.train.AdamOptimizer(0.5).minimize(loss, step)
    iterator.get_next()
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": y, "step": tf.identity(step)})})
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [1.0, -2.0]})
