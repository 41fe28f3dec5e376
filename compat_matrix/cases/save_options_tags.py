"""An extra tag and debug information, requested with save options.

The one MetaGraph then carries two tags, and a reader has to request both.
"""

CLAUSES = ("NG-01", "V1-05", "API-01")
FEATURES = ("tags", "save options")
REQUIRES = "tensorflow>=2.17"  # extra_tags
SAVE_OPTIONS = {"extra_tags": ["second"], "save_debug_info": True}


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([], tf.float32)])
    return root, root.f


def requests(np):
    return [("serving_default", {"x": np.float32(2)}), ("f", (np.float32(3),), {})]
