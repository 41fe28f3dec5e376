"""The TF 2.x way: ``tf.saved_model.load`` and ``tf.saved_model.save``. Python 3.6 syntax."""

import collections
import contextlib
import os
import re
import sys
from keyword import iskeyword

from . import describing, nests, producing, protocol, signature_wire

IMPORTS = ("tensorflow",)
CONSUMER = {
    "place": 1,
    "summary": "tf.saved_model.load, eager",
    "capabilities": ("describe", "functions", "resave", "tags", "threads", "variables"),
    "loader": "objects",
}

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VARIABLE_VALUE = "VARIABLE_VALUE"

Model = collections.namedtuple("Model", ["root", "directory"])


class TF2Worker(protocol.Worker):
    """Eager execution; a model is the object that ``load`` returned."""

    name = "tf2"
    capabilities = CONSUMER["capabilities"] + ("produce",)

    def __init__(self):
        super(TF2Worker, self).__init__()
        # tf.saved_model.load imports it where it is installed, and then revives optimizers that it
        # otherwise cannot load. The result of a cell must not depend on that; only TensorFlow is
        # tested.
        sys.modules["tf_keras"] = None
        import tensorflow as tf

        self.tf = v2_api(tf)
        self.refusals = self.refusals + (tf.errors.UnimplementedError,)

    def versions(self):
        import google.protobuf

        own = {"tensorflow": self.tf.__version__, "protobuf": google.protobuf.__version__}
        return dict(super(TF2Worker, self).versions(), **own)

    def produce(self, case, directory, scratch):
        producing.produce(case, directory, scratch, self.tf.saved_model.save, tf=self.tf)

    def load(self, directory, tags):
        return Model(self.tf.saved_model.load(directory, tags=tags), directory)

    def signatures(self, model):
        return describe_all(self.tf, model.root.signatures)

    def call_signature(self, model, key, inputs):
        return call_signature(self.tf, model.root.signatures[key], inputs)

    def call_function(self, model, path, args, kwargs, inputs):
        return nests.call_function(self.tf, model.root, path, args, kwargs, inputs)

    def variables(self, model):
        return variables(self.tf, model.root, model.directory)

    def describe(self, model, tags):
        return describing.describe(self.tf, model.root, model.directory, tags)

    def differentiate(self, model, tags, path, args, kwargs, inputs):
        return describing.gradients(
            self.tf, model.root, path, args, kwargs, inputs, model.directory, tags
        )

    def change(self, model, tags):
        return describing.change(self.tf, model.root, model.directory, tags)

    def resave(self, model, directory, tags):
        self.tf.saved_model.save(model.root, directory, signatures=public(model.root.signatures))
        return ["serve"]  # whatever was loaded, TF 2.x saves this tag set


def v2_api(tf):
    """The names of TensorFlow 2.x, with its behaviour: 1.15 has both on request."""
    if not tf.__version__.startswith("1."):
        return tf
    tf.compat.v1.enable_v2_behavior()
    return tf.compat.v2


# The code below uses only the interface of a loaded object, so that it also works for the reference
# implementation's objects.


def public(signatures):
    """Loaded signatures without the internal ones, which tf.saved_model.load shows for a TF 1.x
    MetaGraph.

    Sorted: it has those of a TF 1.x MetaGraph in an order that differs from one process to the
    next.
    """
    return {
        key: function
        for key, function in sorted(signatures.items())
        if key not in signature_wire.INTERNAL_KEYS
    }


def describe_all(tf, signatures):
    """``{key: {"inputs": {name: {dtype, shape}}, "outputs": ...}}`` of loaded signatures;
    composites are several names.
    """
    described = {}
    for key, function in public(signatures).items():
        described[key] = {"outputs": _describe(tf, function.structured_outputs)}
        if (
            function.structured_input_signature is not None
        ):  # TF 1.15 to 2.3 do not say, of a TF 1.x signature
            described[key]["inputs"] = _describe(tf, function.structured_input_signature[1])
    return described


def _describe(tf, specs):
    out = {}
    for name, spec in specs.items():
        given = getattr(spec, "name", None) or name
        for key, dtype, shape in _parts(tf, given if identifier(given) == name else name, spec):
            dims = tf.TensorShape(shape)
            out[key] = {
                "dtype": dtype.base_dtype.name,
                "shape": None if dims.rank is None else dims.as_list(),
            }
    return out


def identifier(name):
    """Return what a writer makes of a SignatureDef's name for Python's sake; the spec keeps the
    name itself.
    """
    cleaned = re.sub(r"\W", "_", name)
    return "arg_" + cleaned if cleaned[:1].isdigit() or iskeyword(cleaned) else cleaned


def _parts(tf, name, spec):
    """``[(name, dtype, shape)]`` of a TensorSpec, a tensor or a composite of either."""
    if isinstance(spec, (tf.SparseTensor, tf.SparseTensorSpec)):
        rank = spec.shape.rank
        parts = (
            ("values", spec.dtype, [None]),
            ("indices", tf.int64, [None, rank]),
            ("dense_shape", tf.int64, [rank]),
        )
        return [(name + "/" + part, dtype, shape) for part, dtype, shape in parts]
    components = tf.nest.flatten(spec, expand_composites=True)
    if len(components) == 1 and components[0] is spec:
        return [(name, spec.dtype, spec.shape)]
    return [
        ("{}/component_{}".format(name, i), part.dtype, part.shape)
        for i, part in enumerate(components)
    ]


def call_signature(tf, function, inputs):
    """Call a loaded signature with ``{name: Tensor}``; returns named output tensors."""
    keywords = {keyword(function, name): nests.to_tf(tf, tensor) for name, tensor in inputs.items()}
    pairs = []
    for name, value in sorted(function(**keywords).items()):
        pairs.extend(nests.flatten_output(tf, name, value))
    return protocol.named(pairs)


def keyword(function, name):
    """Return the keyword of a loaded signature for the input ``name``.

    ``x/values`` of a sparse input is called ``x_values`` by the function that stands for a TF 1.x
    signature.
    """
    known = function.structured_input_signature and set(function.structured_input_signature[1])
    part = "_".join(name.rsplit("/", 1))
    return part if known is None or (name not in known and part in known) else name


def variables(tf, root, directory):
    """``(naming, {name: Tensor})``: checkpoint keys for an object graph, names of the graph for a
    TF 1.x MetaGraph.
    """
    prefix = os.path.join(directory, "variables", "variables")
    reader = tf.train.load_checkpoint(prefix) if tf.io.gfile.exists(prefix + ".index") else None
    found, naming = [], "key"
    if reader is not None and reader.has_tensor(OBJECT_GRAPH):
        found = _by_checkpoint_key(tf, root, reader.get_tensor(OBJECT_GRAPH))
    if not found:
        found = [
            (variable.name.split(":")[0], variable) for variable in getattr(root, "variables", ())
        ]
        naming = "name"
    return naming, protocol.named((name, nests.from_tf(tf, variable)) for name, variable in found)


def _by_checkpoint_key(tf, root, serialized):
    """``[(key, variable)]``: walk the checkpoint's own object graph and the loaded objects side by
    side.
    """
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    graph = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(serialized)
    objects, queue = {0: root}, collections.deque([0])
    while queue:
        index = queue.popleft()
        for child in graph.nodes[index].children:
            # Another path may lead to what this one does not; what none leads to is reported as
            # missing by the check.
            with contextlib.suppress(AttributeError, IndexError, KeyError):
                if child.node_id not in objects:
                    objects[child.node_id] = nests.child(objects[index], child.local_name)
                    queue.append(child.node_id)
    for index, node in enumerate(graph.nodes):
        for slot in node.slot_variables:
            with contextlib.suppress(AttributeError, KeyError):
                optimizer, variable = objects[index], objects[slot.original_variable_node_id]
                objects[slot.slot_variable_node_id] = _slot(optimizer, variable, slot.slot_name)
    pairs = []
    for index, found in sorted(objects.items()):
        if isinstance(found, tf.Variable):
            pairs += [
                (attribute.checkpoint_key, found)
                for attribute in graph.nodes[index].attributes
                if attribute.name == VARIABLE_VALUE
            ]
    return pairs


def _slot(optimizer, variable, name):
    """Return an optimizer's slot for a variable; a reference_impl object, which stands for any
    optimizer, has it in a mapping.
    """
    if hasattr(optimizer, "get_slot"):
        return optimizer.get_slot(variable, name)
    return optimizer.slot_variables[variable.ref(), name]


def main():
    protocol.serve(TF2Worker)
