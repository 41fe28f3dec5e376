"""One set of weights used twice by reuse, a weight tied by transposition, an exponential moving average under its own key."""

CLAUSES = ("V1-15",)
FEATURES = ("reuse", "moving_average", "ref_variables")
RUNTIME = "tf1.8"


def generate(tf, rec):
    left = tf.placeholder(tf.float32, [None, 3], "left")
    right = tf.placeholder(tf.float32, [None, 3], "right")

    def tower(x):
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", initializer=tf.constant(rec.exact(3, 2)))
            return tf.matmul(tf.matmul(x, w), tf.transpose(w)), w

    (a, w), (b, _) = tower(left), tower(right)
    average = tf.train.ExponentialMovingAverage(0.5)
    update = average.apply([w])
    sess = rec.initialized_session()
    sess.run(tf.assign(w, w * 2.0))
    sess.run(update)
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"left": left, "right": right}, {"score": tf.reduce_sum(a * b, 1), "average": tf.identity(average.average(w))}
            )
        },
    )
    rec.ask("serving_default", {"left": rec.exact(1, 3), "right": rec.exact(1, 3)})
    rec.ask("serving_default", {"left": rec.exact(2, 3), "right": -rec.exact(2, 3)})
