"""Record the shapes of results in functions and SignatureDefs, where readers look for them.

RFC: ATTR-03, FN-17
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import CALLS
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.specs import shape_of, shape_proto
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.references import named_by
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.gradients import traced_graphs

_SHAPES = "_output_shapes"
_log = logging.getLogger(__name__)


class Annotations:
    """Adds the shapes of results and the types behind handles to FunctionDefs of the eager runtime.

    Shipped readers do not infer shapes through a call or from ``set_shape``. Without the type of
    the variable behind a handle they cannot differentiate. The Python graph of a traced function
    knows both.

    RFC: FN-17
    """

    def __init__(self, library: ExportLibrary):
        self._library = library
        self._done: set[LiveName] = set()

    def complete(self, function: object) -> None:
        """Complete a concrete function and the functions it calls.

        A loaded function is already complete.
        """
        if isinstance(function, RegisteredFunction):
            return
        for live, graph in traced_graphs(function, self._library):
            if live not in self._done:
                self._done.add(live)
                _add_graph_shapes(self._library.definitions[self._library.add(None, live)], graph)


def _add_graph_shapes(definition: schema.FunctionDef, graph: tf.Graph) -> None:
    signature = definition.signature
    for arguments, tensors in (
        (signature.input_arg, graph.inputs),
        (signature.output_arg, graph.outputs),
    ):
        for argument, tensor in zip(
            arguments, tensors
        ):  # a differentiated graph has more results than the function has
            behind = (
                api.handle_data(tensor)
                if tensor.dtype == tf.resource and not argument.handle_data
                else []
            )
            if (
                len(behind) == 1
                # a variable; of the two types behind a table's handle TensorFlow's load keeps one
                # (GOAL-13)
            ):
                argument.handle_data.extend(behind)
    operations = {operation.name: operation for operation in graph.get_operations()}
    for node in definition.node_def:
        operation = operations.get(node.name)
        if operation is not None and operation.type == node.op and _SHAPES not in node.attr:
            shapes = [output.shape for output in operation.outputs[: _results(node, operation)]]
            if node.op in CALLS or any(
                shape.rank is not None for shape in shapes
            ):  # readers count the results of a call by it
                node.attr[_SHAPES].list.shape.extend(shape_proto(shape) for shape in shapes)


def _results(node: schema.NodeDef, operation: tf.Operation) -> int:
    """Return the number of results of a node.

    In a graph that was differentiated, the operation of a call has more.
    """
    return len(node.attr["Tout"].list.type) if "Tout" in node.attr else len(operation.outputs)


def infer_outputs(
    signatures: Mapping[str, Any],
    functions: Mapping[str, Any],
    graph_def: schema.GraphDef,
    library: ExportLibrary,
    unchecked: Collection[str] = (),
) -> None:
    """Add the shapes of outputs that depend on the main graph to SignatureDefs and functions, and
    replace false ones.

    A function that was traced over a table does not know the shape of the table's values: the
    handle does not have it, and the node that makes the table is in the main graph. TensorFlow's
    own inference over the main graph finds the shape.

    `signatures` has the SignatureDefs, `functions` the SavedConcreteFunctions, by the name of the
    function that is called. The `unchecked` ones have the shapes that the SignatureDef of a TF 1.x
    graph states. TensorFlow loads no false shape.
    """
    asked: list[tuple[str, str, schema.TensorInfo]] = []
    for function, signature in signatures.items():
        asked += [
            (function, name, info)
            for name, info in signature.outputs.items()
            if info.WhichOneof("encoding") == "name"
            and (info.tensor_shape.unknown_rank or function in unchecked)
        ]
    if not asked:
        return
    shapes = _shapes(graph_def, [info.name for _, _, info in asked], library)
    nodes = {node.name: node for node in graph_def.node}
    for function, name, info in asked:
        shape, stated = shapes.get(info.name), shape_of(info.tensor_shape)
        if shape is not None and (
            shape.rank is not None if stated.rank is None else not shape.is_compatible_with(stated)
        ):
            if stated.rank is not None:
                _log.warning(
                    "the shape %s of the result %r of a signature is false, the graph has %s"
                    " (V1-01)",
                    stated,
                    name,
                    shape,
                )
            info.tensor_shape.CopyFrom(shape_proto(shape))
            outputs = functions[function].output_signature.dict_value.fields
            if name in outputs:
                outputs[name].tensor_spec_value.shape.CopyFrom(info.tensor_shape)
            call, _, index = info.name.rpartition(":")
            said = nodes[call].attr[_SHAPES].list.shape if _SHAPES in nodes[call].attr else ()
            if int(index) < len(said):
                said[int(index)].CopyFrom(info.tensor_shape)
            _annotate(library.definitions[ExportName(function)], int(index), info.tensor_shape)


def _annotate(definition: schema.FunctionDef, result: int, shape: schema.TensorShapeProto) -> None:
    """Record the shape of a result at its node, where TensorFlow 2.12 to 2.21 look when they load a
    function.
    """
    source = definition.ret[definition.signature.output_arg[result].name].partition(":")[0]
    for node in definition.node_def:
        if node.name == source and node.op == "Identity":
            node.attr[_SHAPES].list.ClearField("shape")
            node.attr[_SHAPES].list.shape.add().CopyFrom(shape)


def _shapes(
    graph_def: schema.GraphDef, tensors: list[str], library: ExportLibrary
) -> dict[str, tf.TensorShape]:
    nodes = Nodes(graph_def)
    needed = reachable([input_source(name) for name in tensors], nodes.waits)
    part = schema.GraphDef(versions=graph_def.versions)
    part.node.extend(node for name, node in zip(nodes.names, nodes.messages) if name in needed)
    for node in part.node:
        node.attr.pop(_SHAPES, None)  # the import refuses false ones
    called = map(ExportName, itertools.chain.from_iterable(map(named_by, part.node)))
    closure: set[ExportName] = set()
    for name in set(called) & library.definitions.keys():
        closure.update(library.closure(name))
    part.library.function.extend(library.definitions[name] for name in sorted(closure))
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.import_graph_def(api.to_tf(part, tf.compat.v1.GraphDef), name="")
    except (ValueError, tf.errors.OpError):  # an unknown op, which may still be saved
        return {}
    return {name: graph.get_tensor_by_name(name).shape for name in tensors}
