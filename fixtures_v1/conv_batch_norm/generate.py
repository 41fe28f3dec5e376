"""tf.layers convolution with batch normalisation: a training switch with a default value, update ops, moving averages."""

CLAUSES = ("V1-02", "V1-11")
FEATURES = ("convolution", "batch_norm", "placeholder_with_default", "v1_control_flow", "stateful", "update_ops", "ref_variables")
RUNTIME = "tf1.8"
REQUIRES = "tensorflow<2.16"  # tf.layers is part of Keras 2
STATEFUL = True
TOLERANCE = (1e-5, 1e-6, "batch normalisation sums and divides; kernels order and fuse this differently")


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 6, 6, 2], "x")
    training = tf.placeholder_with_default(False, [], "training")
    y = tf.layers.conv2d(x, 3, 3, padding="same", kernel_initializer=tf.constant_initializer(rec.exact(3, 3, 2, 3)), name="conv")
    y = tf.layers.batch_normalization(y, training=training, momentum=0.5, name="norm")
    y = tf.layers.max_pooling2d(tf.nn.relu(y), 2, 2)
    y = tf.layers.dense(tf.layers.flatten(y), 2, kernel_initializer=tf.constant_initializer(rec.exact(27, 2)), name="head")
    sess = rec.initialized_session()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        updated = tf.identity(y)
    mean = [v for v in tf.global_variables() if v.op.name == "norm/moving_mean"][0]
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": y}),
            "train": rec.signature({"x": x, "training": training}, {"y": updated}),
            "moving_mean": rec.signature({}, {"mean": tf.identity(mean)}),
        },
    )
    rec.ask("serving_default", {"x": rec.exact(1, 6, 6, 2)})
    rec.ask("serving_default", {"x": rec.exact(3, 6, 6, 2)})
    rec.ask("train", {"x": rec.exact(3, 6, 6, 2), "training": True})
    rec.ask("moving_mean", {})
    rec.ask("serving_default", {"x": rec.exact(1, 6, 6, 2)})
