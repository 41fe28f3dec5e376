"""An op of tf.contrib (Resampler) that no later TensorFlow registers, beside a signature that does not need it."""

CLAUSES = ("COMPAT-02", "RP-07")
FEATURES = ("contrib_op", "unknown_op")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow<2"  # tf.contrib went with TensorFlow 2.0


def generate(tf, rec):
    image = tf.placeholder(tf.float32, [None, 4, 4, 1], "image")
    warp = tf.placeholder(tf.float32, [None, 2], "warp")
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"image": image, "warp": warp}, {"sampled": tf.contrib.resampler.resampler(image, warp)}
            ),
            "mean": rec.signature({"image": image}, {"mean": tf.reduce_mean(image, [1, 2])}),
        },
    )
    rec.ask("serving_default", {"image": rec.exact(1, 4, 4, 1), "warp": [[0.5, 1.5]]})
    rec.ask("serving_default", {"image": rec.exact(2, 4, 4, 1), "warp": [[0.0, 0.0], [2.25, 3.0]]})
    rec.ask("mean", {"image": rec.exact(2, 4, 4, 1)})
