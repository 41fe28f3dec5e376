"""Custom gradients: a node may name a Python function as its gradient; the file needs a FunctionDef
for each such gradient.

A loaded model has its gradient functions. For a function traced here, the registered Python
gradient is traced around its operation. Tensors of the operation's graph that the gradient uses
become captures, named by function and tensor.

RFC: FMT-14
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.functions.captured_tensor import CapturedTensor
from reference_impl.functions.names import ExportName, FileName
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.function_sources import FileFunctions, SourceName
from reference_impl.saving.gradient_sites import Site
from reference_impl.saving.traces import Trace, trace_of
from reference_impl.saving.values import eager_tensor


class GradientTracer:
    """Finds or makes the gradient functions that the library of an export needs, and adds them;
    `made` lists the traced ones.
    """

    def __init__(self, library: ExportLibrary):
        self._library = library
        self._functions: dict[SourceName, Any] = {}
        self.made: list[Any] = []

    def trace(self, op_type: ExportName) -> Optional[Trace]:
        """Return the gradient function of an op type of the export, or None.

        Raises SaveError if it cannot be traced.
        """
        source, original = self._library.gradients[op_type]
        if isinstance(source, FileFunctions):
            make = source.library.custom_gradients.get(FileName(original))
            return None if make is None else self._renamed(trace_of(make(source.library)))
        gradient = api.gradient_function(original)
        if gradient is None:
            return None
        site = self._library.site_of_gradient(op_type)
        if site is None:
            raise SaveError(
                "the operation of this custom gradient cannot be found",
                node=original,
                clause="FMT-14",
            )
        specs = [tf.TensorSpec(output.shape, output.dtype) for output in site.operation.outputs]

        def custom_gradient(*result_gradients: tf.Tensor) -> Any:
            return gradient(site.operation, *result_gradients)

        try:
            with site.operation.graph.as_default():
                function = tf.function(custom_gradient, autograph=False).get_concrete_function(
                    *specs
                )
        except Exception as error:  # code of users
            reason = f"the custom gradient of {site.operation.name!r} cannot be traced: {error}"
            raise SaveError(reason, node=site.function, clause="FMT-14") from error
        trace = trace_of(function)
        self._functions[trace.name] = function
        captures = [self._located(capture, site) for capture in trace.captures]
        return dataclasses.replace(trace, captures=captures)

    def add(self, trace: Trace) -> ExportName:
        """Add a gradient function to the export and return its name."""
        function = self._functions.get(trace.name) if trace.source is None else None
        if function is not None:
            self.made.append(function)
        return self._library.add(trace.source, trace.name, function)

    def _located(self, capture: tf.Tensor, site: Site) -> Any:
        """Return a capture for the object graph: a tensor of the operation's function by its name
        in the FunctionDef.
        """
        graph = site.operation.graph
        if not isinstance(capture, tf.Tensor) or eager_tensor(capture):
            return capture
        if capture.graph is not graph:
            capture = api.captured_as(graph, capture)
        if capture.graph is not graph:
            return capture
        value = tf.get_static_value(capture)
        if value is not None:
            # A node that the function itself does not use is not in its FunctionDef.
            return tf.convert_to_tensor(value, capture.dtype)
        function = self._library.add(None, site.function)
        inputs = [tensor is capture for tensor in graph.inputs]
        if any(inputs):
            argument = self._library.definitions[function].signature.input_arg[inputs.index(True)]
            return CapturedTensor(f"{argument.name}:0", function)
        return CapturedTensor(capture.name, function)

    def _renamed(self, trace: Trace) -> Trace:
        captures = [
            CapturedTensor(c.tensor, self._library.add(trace.source, FileName(c.function)))
            if isinstance(c, CapturedTensor)
            else c
            for c in trace.captures
        ]
        return dataclasses.replace(trace, captures=captures)
