"""A checkpoint that lacks one of two variables: the file is well-formed, and no loader restores the
model.
"""

import os

CLAUSES = ("RP-08",)
FEATURES = ("checkpoint", "refusal", "version_skew")
CHECKS = ("load",)


def build(tf, work):
    root = tf.Module()
    root.kept = tf.Variable([1.0, 2.0])
    root.lost = tf.Variable([3.0, 4.0])
    root.f = tf.function(
        lambda x: {"y": x * root.kept + root.lost}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def after_save(tf, directory):
    prefix = os.path.join(directory, "variables", "variables")
    reader = tf.train.load_checkpoint(prefix)
    names = sorted(
        name for name in reader.get_variable_to_shape_map() if not name.startswith("lost/")
    )
    values = [tf.constant(reader.get_tensor(name)) for name in names]
    for name in os.listdir(os.path.dirname(prefix)):
        os.remove(os.path.join(os.path.dirname(prefix), name))
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )


def requests(np):
    return [("serving_default", {"x": np.float32([1, 3])})]
