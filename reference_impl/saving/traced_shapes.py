"""Record the shapes of results in traced functions, where readers look for them.

RFC: FN-17
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import CALLS
from reference_impl.functions.names import ExportName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.specs import shape_protos
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

    def complete(self, function: object) -> None:
        """Complete a concrete function and the functions it calls.

        A loaded function is already complete.
        """
        if isinstance(function, RegisteredFunction):
            return
        for name, graph in traced_graphs(function, self._library):
            if name not in self._done:
                self._done.add(name)
                _add_graph_shapes(self._library.definitions[name], graph)


def _add_graph_shapes(definition: schema.FunctionDef, graph: tf.Graph) -> None:
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
    _add_result_shapes(definition, {item.name: item for item in graph.get_operations()})


def _add_result_shapes(
    definition: schema.FunctionDef, operations: Mapping[str, tf.Operation]
) -> None:
    noted: list[tuple[schema.NodeDef, list[tf.TensorShape]]] = []
    for node in definition.node_def:
        operation = operations.get(node.name)
        if operation is not None and operation.type == node.op and _SHAPES not in node.attr:
            shapes = [output.shape for output in operation.outputs[: _results(node, operation)]]
            # Readers count the results of a call by this attribute.
            if node.op in CALLS or any(shape.rank is not None for shape in shapes):
                noted.append((node, shapes))
    every = list(itertools.chain.from_iterable([shapes for _, shapes in noted]))
    protos = iter(shape_protos(every))
    for node, shapes in noted:
        node.attr[_SHAPES].list.shape.extend(itertools.islice(protos, len(shapes)))


def _results(node: schema.NodeDef, operation: tf.Operation) -> int:
    """Return the number of results of a node.

    In a graph that was differentiated, the operation of a call has more.
    """
    return len(node.attr["Tout"].list.type) if "Tout" in node.attr else len(operation.outputs)
