"""Two different files with the same name, one file marked twice, and one that no function uses.

Copies must not overwrite each other; each function has to read its own file after the directory
moved.
"""

import os

CLAUSES = ("RES-05", "RES-07", "RES-09", "RES-13", "FMT-13")
FEATURES = ("assets", "strings")
REQUIRES = "tensorflow>=2.0"  # the tf.compat.v2 of 1.15 has no saved_model.Asset


def build(tf, work):
    root = tf.Module()
    for name in ("left", "right"):
        folder = os.path.join(work, name)
        os.mkdir(folder)
        with open(os.path.join(folder, "data.txt"), "w") as stream:
            stream.write("text of " + name)
    root.left = tf.saved_model.Asset(os.path.join(work, "left", "data.txt"))
    root.left_again = tf.saved_model.Asset(os.path.join(work, "left", "data.txt"))
    root.right = tf.saved_model.Asset(os.path.join(work, "right", "data.txt"))
    unused = os.path.join(work, "unused größe.bin")
    with open(unused, "wb") as stream:
        stream.write(bytes(range(256)))
    root.unused = tf.saved_model.Asset(unused)
    root.read = tf.function(
        lambda: {
            name: tf.io.read_file(getattr(root, name).asset_path)
            for name in ("left", "left_again", "right")
        },
        input_signature=[],
        autograph=False,
    )
    return root, root.read


def requests(np):
    return [("serving_default", {}), ("read", (), {})]
