"""Objects as SavedObject messages (FMT-01, FMT-02, PRIM-01..PRIM-06)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.kinds import keras_identity, specs
from reference_impl.kinds.captured_tensor import CapturedTensor
from reference_impl.saving import traces
from reference_impl.saving.functions import Library
from reference_impl.saving.signatures import SignatureFunction, shape_proto
from reference_impl.saving.traces import Trace
from reference_impl.saving.tree import Node, identifier


def variable_name(variable: Any) -> str:
    return str(variable.name).split(":")[0]


def fill_variable(out: Any, variable: Any, devices: bool, expand: bool) -> None:
    """A SavedVariable. What a wrapper does not say is taken from the variable in it.

    Args:
      devices: say where it is.
      expand: say of which variables a variable of a strategy is made.
    """
    inner = api.variable_components(variable)[0]
    out.dtype = inner.dtype.as_datatype_enum
    out.shape.CopyFrom(shape_proto(inner.shape))
    out.trainable = bool(variable.trainable)
    out.name = variable_name(variable if isinstance(variable, tf.Variable) else inner)
    holder = variable if isinstance(variable, tf.Variable) else inner
    out.synchronization = int(holder.synchronization.value)
    out.aggregation = int(holder.aggregation.value)
    if devices:
        out.device = inner.device
    parts = api.variable_components(variable)
    if expand and len(parts) > 1:
        for part in parts:
            out.experimental_distributed_variable_components.add(name=variable_name(part), device=part.device)


def fill_function(out: Any, node: Node, names: list[str]) -> None:
    """A SavedFunction with its traces."""
    out.function.concrete_functions.extend(names)
    out.function.function_spec.CopyFrom(traces.function_spec(node.object, node.path))
    for name, child in node.children.items():
        out.dependencies.add(node_id=child, local_name=name)


def fill_concrete(out: Any, node: Node, trace: Trace, name: str) -> None:
    """A SavedBareConcreteFunction."""
    bare = out.bare_concrete_function
    bare.concrete_function_name = name
    bare.argument_keywords.extend(trace.keywords)
    bare.allowed_positional_arguments = trace.positional
    if trace.signature is not None:
        bare.function_spec.CopyFrom(traces.spec_proto(_with_defaults(trace), _declared(trace), None, node.path))
    for child_name, child in node.children.items():
        out.dependencies.add(node_id=child, local_name=child_name)


def _declared(trace: Trace) -> Any:
    """The input signature of a traced function of plain tensors: without one TensorFlow before 2.14 converts no arguments."""
    if trace.source is not None or trace.inputs[1] or not all(isinstance(spec, tf.TensorSpec) for spec in trace.inputs[0]):
        return None
    return specs.from_tf(tuple(tf.TensorSpec(spec.shape, spec.dtype) for spec in trace.inputs[0]))


def _with_defaults(trace: Trace) -> Any:
    """The signature without what stands for a default value that is not known: an `object()` before TensorFlow 2.14."""
    assert trace.signature is not None
    parameters = list(trace.signature.parameters.values())
    unknown = [p for p in parameters if type(p.default) is object or type(p.default).__name__ == "CapturedDefaultValue"]
    if not unknown:
        return trace.signature
    known = [p.replace(default=p.empty) if p in unknown else p for p in parameters]
    return trace.signature.replace(parameters=known)


def fill_other(out: Any, node: Node, library: Library, assets: dict[int, int], constants: dict[int, str]) -> None:
    """All kinds but variables and functions."""
    obj = node.object
    if isinstance(obj, api.Asset):
        out.asset.asset_file_def_index = assets[node.number]
        out.asset.SetInParent()
    elif isinstance(obj, CapturedTensor):
        out.captured_tensor.name, out.captured_tensor.concrete_function = obj.tensor, obj.function
    elif isinstance(obj, api.CapturableResource):
        out.resource.device = api.resource_device(obj)
        out.resource.SetInParent()
    elif node.number in constants:
        out.constant.operation = constants[node.number]
    elif (keras := keras_identity.kept(obj)) is not None:
        out.user_object.CopyFrom(keras)
    else:
        for name, number in node.dependencies.items():
            out.dependencies.add(node_id=number, local_name=name)
        out.user_object.identifier = identifier(obj)
        out.user_object.version.producer = out.user_object.version.min_consumer = 1


def is_concrete(obj: Any) -> bool:
    return isinstance(obj, (api.ConcreteFunction, SignatureFunction))


def new_object() -> Any:
    return schema.SavedObject()
