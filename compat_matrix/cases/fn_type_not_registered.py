"""An argument of a type that another package must register, like the distributions of TensorFlow
Probability.

An extension type takes its place while the model is saved. Then the file is edited to name a
registered type that does not exist. Sessions and servers never read that field. Whether
`tf.saved_model.load` succeeds depends on the packages imported before, which no file records.
"""

import importlib
import os

CLAUSES = ("PY-05", "COMPAT-02")
FEATURES = ("extension_types", "version_skew")
# files of older releases are read by releases with other messages about such a type
REQUIRES = "tensorflow>=2.12"
CHECKS = ("load", "values")


def build(tf, work):
    class Pair(tf.experimental.ExtensionType):
        __name__ = (
            "acme.Pair" + os.urandom(4).hex()
        )  # a name cannot be registered twice in a process
        first: tf.Tensor
        second: tf.Tensor

    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    root.total = tf.function(lambda pair: pair.first + pair.second * root.v)
    root.total(Pair(first=tf.zeros([2]), second=tf.ones([2])))
    root.f = tf.function(
        lambda x: {"y": x + root.v}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def after_save(tf, directory):
    protos = importlib.import_module(
        "tensorflow.core.protobuf.saved_model_pb2"
    )  # TensorFlow has no public name for it
    path = os.path.join(directory, "saved_model.pb")
    with open(path, "rb") as stream:
        model = protos.SavedModel.FromString(stream.read())

    def rename(message):
        for field, value in message.ListFields():
            if field.name == "type_spec_value" and value.type_spec_class_name.startswith("acme."):
                value.type_spec_class = value.REGISTERED_TYPE_SPEC
                value.type_spec_class_name = "acme.Pair"
            elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
                for item in [value] if hasattr(value, "ListFields") else value:
                    rename(item)

    objects = model.meta_graphs[0].object_graph_def
    for function in objects.concrete_functions.values():
        rename(function)
    rename(objects)
    with open(path, "wb") as stream:
        stream.write(model.SerializeToString(deterministic=True))


def requests(np):
    return [("serving_default", {"x": np.float32([1, 3])})]
