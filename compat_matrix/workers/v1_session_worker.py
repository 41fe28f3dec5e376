"""The TF 1.x way: ``tf.compat.v1.saved_model.loader`` into a Graph and a Session.

Runs on TensorFlow 1.x and 2.x.

Python 3.6 syntax.
"""

import collections
import inspect
import os
import shutil

import numpy as np

from savedmodel_common import tensors as tensor_file

from . import protocol, signature_wire

IMPORTS = ("tensorflow",)
CONSUMER = {
    "place": 2,
    "summary": "tf.compat.v1.saved_model.loader in a Session",
    "capabilities": ("fetch", "resave", "tags", "threads"),
    "loader": "session",
}

MAIN_OP_KEYS = ("saved_model_main_op", "legacy_init_op")

Model = collections.namedtuple(
    "Model", ["directory", "graph", "session", "meta_graph", "signatures"]
)


class V1SessionWorker(protocol.Worker):
    """One Graph and Session per loaded MetaGraph."""

    name = "v1_session"
    capabilities = CONSUMER["capabilities"]
    config = None  # a ConfigProto for its sessions

    def __init__(self):
        super(V1SessionWorker, self).__init__()
        import tensorflow as tf

        self.tf = tf
        # `compat.v1` came with 1.13.
        self.v1 = getattr(getattr(tf, "compat", None), "v1", None) or tf
        self.refusals = self.refusals + (tf.errors.UnimplementedError,)

    def versions(self):
        import google.protobuf

        out = super(V1SessionWorker, self).versions()
        out.update(
            tensorflow=getattr(self.v1, "__version__", None) or self.tf.__version__,
            protobuf=google.protobuf.__version__,
        )
        return out

    def load(self, directory, tags):
        graph = self.tf.Graph()
        session = self.v1.Session(graph=graph, config=self.config)
        try:
            with graph.as_default():
                meta_graph = self.v1.saved_model.loader.load(session, tags, directory)
        except BaseException:
            session.close()
            raise
        signatures = collections.OrderedDict(
            (key, signature_wire.signature(meta_graph.signature_def[key].SerializeToString()))
            for key in sorted(meta_graph.signature_def)
            if key not in signature_wire.INTERNAL_KEYS
        )
        return Model(directory, graph, session, meta_graph, signatures)

    def release(self, model):
        model.session.close()

    def signatures(self, model):
        return signature_wire.describe(model.signatures)

    def call_signature(self, model, key, inputs):
        names, produced = signature_wire.feed_names(model.signatures, key, inputs)
        for entry in model.signatures[key][0]:
            given = inputs[entry.name].dtype if entry.name in inputs else entry.dtype
            if entry.dtype not in (given, "invalid"):  # session.run would convert it without a word
                raise TypeError(
                    "input {!r} of {!r} is {}, given is {}".format(
                        entry.name, key, entry.dtype, given
                    )
                )
        feed = {names[name]: self._to_numpy(tensor) for name, tensor in inputs.items()}
        values = model.session.run([entry.tensor for entry in produced], feed)
        return protocol.named(
            (entry.name, self._tensor(model, entry.tensor, value))
            for entry, value in zip(produced, values)
        )

    def fetch(self, model, names):
        values = model.session.run(list(names))
        return protocol.named(
            (name, self._tensor(model, name, value)) for name, value in zip(names, values)
        )

    def _to_numpy(self, tensor):
        dtype = self.tf.as_dtype(tensor.dtype)
        if tensor.dtype == "string":
            return tensor.array
        return np.asarray(tensor.array).view(dtype.as_numpy_dtype)

    def _tensor(self, model, name, value):
        dtype = model.graph.get_tensor_by_name(name).dtype.base_dtype.name
        if dtype == "string":
            # NumPy's own bytes type would cut trailing NULs off.
            value = np.array(value, dtype=object)
        return tensor_file.from_numpy(value, dtype)

    # Saving
    # ----------------------------------------------------------------------------------------------

    def resave(self, model, directory, tags):
        v1, meta_graph = self.v1, model.meta_graph
        builder = v1.saved_model.builder.SavedModelBuilder(directory)
        signatures = {key: meta_graph.signature_def[key] for key in model.signatures}
        main_op = _main_op(model)
        with model.graph.as_default():
            for key in MAIN_OP_KEYS:
                # The import filled them; the builder refuses a main op while one is registered.
                model.graph.clear_collection(key)
            saver = (
                v1.train.Saver(saver_def=meta_graph.saver_def)
                if meta_graph.saver_def.restore_op_name
                else None
            )
            wanted = {
                "signature_def_map": signatures,
                "main_op": main_op,
                "saver": saver,
                "strip_default_attrs": getattr(
                    meta_graph.meta_info_def, "stripped_default_attrs", False
                ),  # since 1.6
            }
            accepted = inspect.signature(builder.add_meta_graph_and_variables).parameters
            arguments = {key: value for key, value in wanted.items() if key in accepted}
            builder.add_meta_graph_and_variables(model.session, tags, **arguments)
        builder.save()
        self._save_assets(model, directory)
        return tags

    def _save_assets(self, model, directory):
        """Copy the assets and list them in the MetaGraph.

        The builder would look for the files where the first author had them: the constants in a
        loaded graph still hold those paths, the loader feeds the new ones.
        """
        from tensorflow.core.protobuf import saved_model_pb2

        assets = _assets(model.meta_graph)
        if not assets:
            return
        os.makedirs(os.path.join(directory, "assets"))
        for asset in assets:
            shutil.copyfile(
                *(
                    os.path.join(root, "assets", asset.filename)
                    for root in (model.directory, directory)
                )
            )
        path = os.path.join(directory, "saved_model.pb")
        saved_model = saved_model_pb2.SavedModel()
        with open(path, "rb") as stream:
            saved_model.ParseFromString(stream.read())
        del saved_model.meta_graphs[0].asset_file_def[:]
        saved_model.meta_graphs[0].asset_file_def.extend(assets)
        with open(path + ".tmp", "wb") as stream:
            stream.write(saved_model.SerializeToString())
        os.rename(path + ".tmp", path)


def _assets(meta_graph):
    """The AssetFileDefs; writers before 1.14 put them into a collection only."""
    if meta_graph.asset_file_def:
        return list(meta_graph.asset_file_def)
    from tensorflow.core.protobuf import meta_graph_pb2

    out = []
    for packed in meta_graph.collection_def["saved_model_assets"].any_list.value:
        out.append(meta_graph_pb2.AssetFileDef())
        packed.Unpack(out[-1])
    return out


def _main_op(model):
    """The operation that initialises the model after its variables are restored, or None."""
    for key in MAIN_OP_KEYS:
        names = (
            model.meta_graph.collection_def[key].node_list.value
            if key in model.meta_graph.collection_def
            else ()
        )
        if names:
            return model.graph.get_operation_by_name(names[0].split(":")[0])
    key = signature_wire.INTERNAL_KEYS[0]
    if key in model.meta_graph.signature_def:
        name = model.meta_graph.signature_def[key].outputs[key].name
        return model.graph.get_operation_by_name(name.split(":")[0])
    return None


def main():
    protocol.serve(V1SessionWorker)
