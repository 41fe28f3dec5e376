"""Two MetaGraphs, `serve` and `train`, over one checkpoint; the train graph updates the weights."""

CLAUSES = ("V1-04", "V1-05", "V1-06")
FEATURES = ("multi_metagraph", "train_op", "stateful", "ref_variables")
RUNTIME = "tf1.15"
STATEFUL = True


def generate(tf, rec):
    def model():
        x = tf.placeholder(tf.float32, [None, 2], "x")
        w = tf.get_variable("w", initializer=rec.exact(2, 1))
        return x, w, tf.matmul(x, w)

    with tf.Graph().as_default():
        x, w, y = model()
        label = tf.placeholder(tf.float32, [None, 1], "label")
        loss = tf.reduce_mean(tf.square(y - label))
        train_op = tf.train.MomentumOptimizer(0.125, 0.5).minimize(loss, tf.train.get_or_create_global_step(), name="train_op")
        with tf.control_dependencies([train_op]):
            step = tf.identity(tf.train.get_global_step())
        train = rec.initialized_session()
        rec.add(
            train,
            {
                "train": rec.signature({"x": x, "label": label}, {"loss": loss, "step": step}, "tensorflow/train"),
                "weights": rec.signature({}, {"w": tf.identity(w)}),
            },
            tags=("train",),
        )
    with tf.Graph().as_default():
        x, w, y = model()
        serve = rec.session()
        serve.run(tf.global_variables_initializer())
        rec.add(serve, {"serving_default": rec.signature({"x": x}, {"y": y})}, tags=("serve",))
    rec.save()
    rec.ask("serving_default", {"x": [[1.0, 2.0]]})
    rec.ask("weights", {}, tags=("train",))
    rec.ask("train", {"x": [[1.0, 2.0], [-1.0, 0.5]], "label": [[1.0], [0.0]]}, tags=("train",))
    rec.ask("weights", {}, tags=("train",))
