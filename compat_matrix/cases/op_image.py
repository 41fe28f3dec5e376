"""Images: PNG decoded from bytes, resized, flipped and encoded again without loss."""

import struct
import zlib

CLAUSES = ("SIG-17",)
FEATURES = ("ops", "strings")
REQUIRES = "tensorflow>=2.3"  # tf.io.encode_png


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def thumbnail(png):
        image = tf.io.decode_png(png, channels=1)
        large = tf.image.resize(image, [6, 4], method="nearest")
        again = tf.io.decode_png(tf.io.encode_png(tf.image.flip_left_right(large)))
        return {
            "image": image,
            "large": large,
            "again": again,
            "crop": tf.image.central_crop(large, 0.5),
        }

    root.thumbnail = thumbnail
    return root, thumbnail


def requests(np):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + bytes([10 * r, 10 * r + 1]) for r in range(3))
    header = struct.pack(">IIBBBBB", 2, 3, 8, 0, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return [
        ("serving_default", {"png": np.array(png, object)}),
        ("thumbnail", (np.array(png, object),), {}),
    ]
