"""Random ops with op seeds: the first answers after loading are determined, later ones continue the sequence."""

CLAUSES = ("V1-01",)
FEATURES = ("random", "stateful")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.13"  # the rate of tf.nn.dropout
STATEFUL = True
TOLERANCE = (1e-6, 1e-7, "normal and multinomial draws go through log, sin and cos, which newer kernels approximate differently")


def generate(tf, rec):
    tf.set_random_seed(7)
    n = tf.placeholder(tf.int32, [], "n")
    x = tf.placeholder(tf.float32, [None, 4], "x")
    dropped = tf.nn.dropout(x, rate=0.5, seed=3)
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"n": n},
                {
                    "uniform": tf.random_uniform([n], seed=1),
                    "ints": tf.random_uniform([n], 0, 1000, tf.int32, seed=2),
                    "normal": tf.random_normal([n], seed=4),
                },
            ),
            "dropout": rec.signature({"x": x}, {"y": dropped}),
            "shuffle": rec.signature({"x": x}, {"y": tf.random_shuffle(x, seed=5)}),
            "stateless": rec.signature({"n": n}, {"y": tf.random.stateless_uniform([n], [3, 4])}),
        },
    )
    rec.ask("serving_default", {"n": 3})
    rec.ask("serving_default", {"n": 3})
    rec.ask("dropout", {"x": rec.exact(2, 4)})
    rec.ask("shuffle", {"x": rec.exact(3, 4)})
    rec.ask("stateless", {"n": 4})
