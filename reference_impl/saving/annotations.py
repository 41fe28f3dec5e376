"""Add the shapes of results and the types behind handles, which readers need, to FunctionDefs of the eager runtime.

Shipped readers do not infer shapes through a call or from ``set_shape``. Without the type of the variable behind a handle they
cannot differentiate. The Python graph of a traced function knows both.

RFC: FN-17
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.kinds.concrete_function import LoadedConcreteFunction
from reference_impl.kinds.export_library import ExportLibrary
from reference_impl.kinds.specs import shape_proto
from reference_impl.saving.gradients import traced_graphs

_SHAPES = "_output_shapes"


class Annotations:
    """Completes the definitions of functions that were traced here."""

    def __init__(self, library: ExportLibrary):
        self._library = library
        self._done: set[str] = set()

    def complete(self, function: Any) -> None:
        """Complete a concrete function and the functions it calls. A loaded function is already complete."""
        if isinstance(function, LoadedConcreteFunction):
            return
        for live, graph in traced_graphs(function, self._library):
            if live not in self._done:
                self._done.add(live)
                _annotate(self._library.definitions[self._library.add(None, live)], graph)


def _annotate(definition: Any, graph: Any) -> None:
    signature = definition.signature
    for arguments, tensors in ((signature.input_arg, graph.inputs), (signature.output_arg, graph.outputs)):
        for argument, tensor in zip(arguments, tensors):  # a differentiated graph has more results than the function has
            behind = api.behind_handle(tensor) if tensor.dtype == tf.resource and not argument.handle_data else []
            if len(behind) == 1:  # a variable; of the two types behind a table's handle TensorFlow's load keeps one (GOAL-13)
                argument.handle_data.extend(behind)
    operations = {operation.name: operation for operation in graph.get_operations()}
    for node in definition.node_def:
        operation = operations.get(node.name)
        if operation is not None and operation.type == node.op and _SHAPES not in node.attr:
            shapes = [output.shape for output in operation.outputs[: _results(node, operation)]]
            if any(shape.rank is not None for shape in shapes):
                node.attr[_SHAPES].list.shape.extend(shape_proto(shape) for shape in shapes)


def _results(node: Any, operation: Any) -> int:
    """Return the number of results of a node. In a graph that was differentiated, the operation of a call has more."""
    return len(node.attr["Tout"].list.type) if "Tout" in node.attr else len(operation.outputs)
