"""A graph with the layers of Inception V3 and reference variables, in the manner of TF 1.x.

Python 3.6 syntax.

Runs in TensorFlow 1.15 and, where that is not to be had, in TensorFlow 2 through compat.v1.
"""

import sys

import tensorflow as tf

tf = tf.compat.v1


def conv(x, filters, size, stride=1, padding="SAME"):
    rows, columns = size if isinstance(size, tuple) else (size, size)
    with tf.variable_scope(None, "Conv2d"):
        kernel = tf.get_variable(
            "weights",
            [rows, columns, int(x.shape[-1]), filters],
            initializer=tf.truncated_normal_initializer(stddev=0.05),
            use_resource=False,
        )
        x = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding=padding)
        with tf.variable_scope("BatchNorm"):
            scale, offset, mean, variance = [
                tf.get_variable(
                    name,
                    [filters],
                    initializer=tf.constant_initializer(value),
                    use_resource=False,
                    trainable=trained,
                )
                for name, value, trained in (
                    ("gamma", 1.0, True),
                    ("beta", 0.0, True),
                    ("moving_mean", 0.0, False),
                    ("moving_variance", 1.0, False),
                )
            ]
            x, _, _ = tf.nn.fused_batch_norm(
                x, scale, offset, mean, variance, epsilon=0.001, is_training=False
            )
        return tf.nn.relu(x)


def pool(x, kind, stride, padding="SAME"):
    function = tf.nn.max_pool if kind == "max" else tf.nn.avg_pool
    return function(x, ksize=[1, 3, 3, 1], strides=[1, stride, stride, 1], padding=padding)


def module(x, number, *branches):
    with tf.variable_scope(f"Mixed_{number}"):
        return tf.concat([branch(x) for branch in branches], 3)


def chain(*steps):
    def run(x):
        for filters, size in steps:
            x = conv(x, filters, size)
        return x

    return run


def averaged(filters):
    return lambda x: conv(pool(x, "avg", 1), filters, 1)


def reduction(*steps):
    inner = chain(*steps[:-1])
    return lambda x: conv(inner(x), *steps[-1], stride=2, padding="VALID")


def fan(*steps):
    """Steps, then two convolutions side by side."""
    inner = chain(*steps)

    def run(x):
        x = inner(x)
        return tf.concat([conv(x, 384, (1, 3)), conv(x, 384, (3, 1))], 3)

    return run


def network(x):
    x = conv(x, 32, 3, 2, "VALID")
    x = conv(x, 32, 3, 1, "VALID")
    x = pool(conv(x, 64, 3), "max", 2, "VALID")
    x = conv(conv(x, 80, 1, 1, "VALID"), 192, 3, 1, "VALID")
    x = pool(x, "max", 2, "VALID")
    for number, width in enumerate((32, 64, 64)):
        x = module(
            x,
            number,
            chain((64, 1)),
            chain((48, 1), (64, 5)),
            chain((64, 1), (96, 3), (96, 3)),
            averaged(width),
        )
    x = module(
        x,
        3,
        reduction((384, 3)),
        reduction((64, 1), (96, 3), (96, 3)),
        lambda x: pool(x, "max", 2, "VALID"),
    )
    for number, width in enumerate((128, 160, 160, 192), 4):
        long = chain((width, 1), (width, (7, 1)), (width, (1, 7)), (width, (7, 1)), (192, (1, 7)))
        short = chain((width, 1), (width, (1, 7)), (192, (7, 1)))
        x = module(x, number, chain((192, 1)), short, long, averaged(192))
    down = reduction((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3))
    x = module(x, 8, reduction((192, 1), (320, 3)), down, lambda x: pool(x, "max", 2, "VALID"))
    for number in (9, 10):
        x = module(
            x, number, chain((320, 1)), fan((384, 1)), fan((448, 1), (384, 3)), averaged(192)
        )
    x = tf.reduce_mean(x, [1, 2])
    weights = tf.get_variable(
        "logits", [2048, 1000], initializer=tf.truncated_normal_initializer(), use_resource=False
    )
    return tf.nn.softmax(tf.matmul(x, weights))


if __name__ == "__main__":
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        images = tf.placeholder(tf.float32, [None, 299, 299, 3], "images")
        with tf.variable_scope("InceptionV3"):
            predictions = network(images)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(
            session, sys.argv[1], {"images": images}, {"predictions": predictions}
        )
