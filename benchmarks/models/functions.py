"""300 traced functions, each with a variable of its own: many small pieces."""

import sys

import tensorflow as tf

COUNT = 300


class Block(tf.Module):
    def __init__(self, number):
        super().__init__()
        self.weight = tf.Variable(
            tf.random.stateless_normal([4, 4], [number, 0]), name=f"weight_{number}"
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def __call__(self, x):
        y = tf.nn.relu(tf.matmul(x, self.weight))
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y), lambda: tf.cos(y))
        return {"mean": tf.reduce_mean(y, axis=-1, keepdims=True), "all": tf.concat([x, y], -1)}


def build():
    root = tf.Module()
    root.blocks = [Block(number) for number in range(COUNT)]
    return root, {"serving_default": root.blocks[0].__call__}


if __name__ == "__main__":
    made, signatures = build()
    tf.saved_model.save(made, sys.argv[1], signatures=signatures)
