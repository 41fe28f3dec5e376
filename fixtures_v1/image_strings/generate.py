"""PNG images as strings, decoded and resized in a map_fn: the usual image serving input."""

CLAUSES = ("V1-11",)
FEATURES = ("string_io", "image_ops", "map_fn", "v1_control_flow")
RUNTIME = "tf1.13"
TOLERANCE = (1e-6, 1e-6, "bilinear interpolation is vectorised differently")


def generate(tf, rec):
    import numpy as np

    images = tf.placeholder(tf.string, [None], "image_bytes")

    def prepare(encoded):
        image = tf.image.decode_png(encoded, channels=3)
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.resize_bilinear(tf.expand_dims(image, 0), [4, 4], align_corners=False)
        return tf.squeeze(image, [0])

    batch = tf.map_fn(prepare, images, dtype=tf.float32, back_prop=False)
    batch.set_shape([None, 4, 4, 3])
    sess = rec.session()
    pixels = [np.arange(n * n * 3, dtype=np.uint8).reshape(n, n, 3) * 3 for n in (2, 8)]
    encoded = [sess.run(tf.image.encode_png(pixel)) for pixel in pixels]
    rec.export(sess, {"serving_default": rec.signature({"image_bytes": images}, {"images": batch})})
    rec.ask("serving_default", {"image_bytes": encoded[:1]})
    rec.ask("serving_default", {"image_bytes": [encoded[1], encoded[0], encoded[1]]})
