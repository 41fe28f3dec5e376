"""TensorFlow on a SavedModel, with the values of the nodes inside a signature.

TensorFlow inlines the functions that the signature calls, as it does for converters: the node
``dense/MatMul`` of a function is then called ``StatefulPartitionedCall/dense/MatMul``. The graph is
pruned to the nodes that are asked for. All of them in one call keep TensorFlow from fusing ops; a
node that is asked alone is optimised like an output.
"""

import collections
import copy
import itertools

import file_worker
from savedmodel_compat_workers import nests, tensors, tf2_worker

IMPORTS = ("tensorflow",)
# Nodes of TF 1.x that open and close the frame of a loop. A value inside has no single number.
ENTERS, EXITS = ("Enter", "RefEnter"), ("Exit", "RefExit")

LOWERED = "_lower_using_switch_merge"  # TensorFlow then takes a loop or a branch apart


class TensorFlowWorker(file_worker.FileWorker, tf2_worker.TF2Worker):
    """As `tf2_worker`, with operations for the names of all values and for one value."""

    def __init__(self):
        super().__init__()
        self.graphs = {}

    def intermediate(self, model, key, inputs):
        """The values of all nodes that the outputs need, and the outputs by their names."""
        graph = self._graph(model, key)
        return graph.fetched(sorted(graph.results), inputs)

    def op_names(self, request):
        """The names of the values."""
        return {"names": sorted(self._graph(self._model(request), request["signature"]).results)}

    def op_value(self, request):
        """Save one value, from a graph that computes nothing else."""
        graph = self._graph(self._model(request), request["signature"])
        inputs = file_worker.inputs_of(request)
        tensors.save(request["outputs"], graph.fetched([request["value"]], inputs))
        return {}

    def _graph(self, model, key):
        place = id(model.root), key
        if place not in self.graphs:
            self.graphs[place] = Inlined(self.tf, model.root.signatures[key])
        return self.graphs[place]


class Inlined:
    """The graph of a signature without calls; `results` are its tensors by name."""

    def __init__(self, tf, signature):
        self.tf, self.signature = tf, signature
        graph_def = inlined(tf, signature)
        captured = list(signature.captured_inputs)
        given = signature.inputs[: len(signature.inputs) - len(captured)]

        def body(*arguments):
            graph = tf.compat.v1.get_default_graph()
            values = list(arguments) + [graph.capture(one) for one in captured]
            names = [one.name for one in signature.inputs]
            tf.graph_util.import_graph_def(graph_def, dict(zip(names, values)), name="")

        specs = [tf.TensorSpec(one.shape, one.dtype) for one in given]
        self.function = tf.compat.v1.wrap_function(body, specs)
        self.keywords = list(signature._arg_keywords)
        self.feeds = self.function.inputs[: len(given)]
        outputs = [self.function.graph.get_tensor_by_name(one.name) for one in signature.outputs]
        self.results = {one.name: one for one in self._inside(outputs)}
        named = signature.structured_outputs
        if len(named) == len(outputs):  # none is a composite
            self.results.update(zip(sorted(named), outputs))  # TensorFlow flattens by sorted names

    def _inside(self, outputs):
        """The tensors that the outputs need and that a call can return."""
        needed = ancestors([one.op for one in outputs])
        framed = in_frames(self.function.graph.get_operations())
        handles = (self.tf.resource, self.tf.variant)
        for op in needed:
            if op.type == "Placeholder" or op in framed:
                continue
            for tensor in op.outputs:
                if tensor.dtype not in handles and not tensor.dtype._is_ref_dtype:
                    yield tensor

    def fetched(self, names, inputs):
        """The tensors of these names."""
        pruned = self.function.prune(self.feeds, [self.results[name] for name in names])
        given = {tf2_worker.keyword(self.signature, name): one for name, one in inputs.items()}
        values = pruned(*[nests.to_tf(self.tf, given[name]) for name in self.keywords])
        return {name: nests.from_tf(self.tf, value) for name, value in zip(names, values)}


def inlined(tf, function):
    """The GraphDef of a concrete function with the bodies of functions in place of calls.

    Loops and branches stay nodes. Converters (tf2onnx, TensorFlow.js) let TensorFlow inline alike.
    """
    from tensorflow.core.protobuf import rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    graph = function.graph.as_graph_def()
    bodies = {body.signature.name: body for body in graph.library.function}
    originals = copy.deepcopy(bodies)
    for body in bodies.values():
        body.attr.pop("api_implements", None)  # it keeps a call from being inlined
    for node in itertools.chain(graph.node, *[body.node_def for body in bodies.values()]):
        if LOWERED in node.attr:
            node.attr[LOWERED].b = False
    item = tf.compat.v1.MetaGraphDef(graph_def=graph)
    kept = [one.name for one in function.inputs + function.outputs]
    item.collection_def["train_op"].node_list.value.extend(kept)
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1  # small graphs too
    options.optimizers.append("function")
    options.function_optimization = rewriter_config_pb2.RewriterConfig.AGGRESSIVE
    found = tf_optimizer.OptimizeGraph(config, item)
    for body in found.library.function:  # this process knows the functions by their names
        if body.signature.name in originals:
            body.CopyFrom(originals[body.signature.name])
    return found


def ancestors(ops):
    """These ops and all that they need, each once, in no order."""
    found, queue = set(ops), list(ops)
    while queue:
        op = queue.pop()
        for other in [one.op for one in op.inputs] + list(op.control_inputs):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def in_frames(ops):
    """The ops inside loops of TF 1.x, constants too: these wait for the loop."""
    users = collections.defaultdict(list)
    for op in ops:
        for other in [one.op for one in op.inputs] + list(op.control_inputs):
            users[other].append(op)
    found, queue = set(), [op for op in ops if op.type in ENTERS]
    while queue:
        op = queue.pop()
        if op not in found and op.type not in EXITS:
            found.add(op)
            queue += users[op]
    return found


def main():
    file_worker.protocol.serve(TensorFlowWorker)


if __name__ == "__main__":
    main()
