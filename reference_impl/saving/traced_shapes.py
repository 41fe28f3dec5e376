"""Record the shapes of results in traced functions, where readers look for them.

RFC: FN-17
"""

from __future__ import annotations

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import CALLS
from reference_impl.format.values.shapes import Shape, shape_proto
from reference_impl.functions.names import ExportName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.specs import dims_of
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.traced_graphs import traced_graphs

_SHAPES = "_output_shapes"


class TracedShapes:
    """Adds the shapes of results and the types behind handles to FunctionDefs of the eager runtime.

    Shipped readers do not infer shapes through a call or from ``set_shape``. Without the type of
    the variable behind a handle they cannot differentiate. The Python graph of a traced function
    knows both.

    RFC: FN-17
    """

    def __init__(self, library: ExportLibrary):
        self._library = library
        self._done: set[ExportName] = set()
        # sizes -> the message; most results have one of a few shapes
        self._protos: dict[Shape, schema.TensorShapeProto] = {}

    def complete(self, function: object) -> None:
        """Complete a concrete function and the functions it calls.

        A loaded function is already complete.
        """
        if isinstance(function, RegisteredFunction):
            return
        for name, graph in traced_graphs(function, self._library):
            if name not in self._done:
                self._done.add(name)
                definition = self._library.definitions[name]
                _add_types(definition, graph)
                self._add_result_shapes(definition, graph)

    def _add_result_shapes(self, definition: schema.FunctionDef, graph: tf.Graph) -> None:
        """Add the shapes of the results of all nodes, where the graph knows one."""
        operations = {item.name: item for item in graph.get_operations()}
        for node in definition.node_def:
            operation = operations.get(node.name)
            if operation is None or operation.type != node.op or _SHAPES in node.attr:
                continue
            outputs = operation.outputs
            shapes = [dims_of(output.shape) for output in outputs[: _results(node, len(outputs))]]
            # Readers count the results of a call by this attribute.
            if node.op in CALLS or any(shape is not None for shape in shapes):
                protos = [self._proto(shape) for shape in shapes]
                node.attr[_SHAPES].list.shape.extend(protos)

    def _proto(self, shape: Shape) -> schema.TensorShapeProto:
        found = self._protos.get(shape)
        if found is None:
            found = self._protos[shape] = shape_proto(shape)
        return found


def _add_types(definition: schema.FunctionDef, graph: tf.Graph) -> None:
    """Add the types behind the handles among the arguments and results of a function."""
    signature = definition.signature
    for arguments, tensors in (
        (signature.input_arg, graph.inputs),
        (signature.output_arg, graph.outputs),
    ):
        # A differentiated graph has more results than the function has.
        for argument, tensor in zip(arguments, tensors):
            unknown = tensor.dtype == tf.resource and not argument.handle_data
            behind = api.handle_data(tensor) if unknown else []
            # One type for a variable. Of the two types behind a table's handle TensorFlow's load
            # keeps one (GOAL-13).
            if len(behind) == 1:
                argument.handle_data.extend(behind)


def _results(node: schema.NodeDef, outputs: int) -> int:
    """Return the number of results of a node, whose operation has so many outputs.

    In a graph that was differentiated, the operation of a call has more.
    """
    return len(node.attr["Tout"].list.type) if "Tout" in node.attr else outputs
