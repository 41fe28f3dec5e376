"""1 GiB of float32 in 16 variables: reading and writing, nothing else."""

import sys

import tensorflow as tf

COUNT, ROWS, COLUMNS = 16, 2**18, 64  # 64 MiB each


class Tables(tf.Module):
    def __init__(self):
        super().__init__()
        generator = tf.random.Generator.from_seed(1)
        self.tables = [
            tf.Variable(generator.normal([ROWS, COLUMNS]), name=f"table_{i}") for i in range(COUNT)
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, COLUMNS], name="x")])
    def __call__(self, x):
        return {"y": tf.add_n([x * tf.gather(table, [0]) for table in self.tables])}


def build():
    root = Tables()
    return root, {"serving_default": root.__call__}


if __name__ == "__main__":
    made, signatures = build()
    tf.saved_model.save(made, sys.argv[1], signatures=signatures)
