"""Change functions that captured the cached value of a variable to read the variable.

A variable with a ``caching_device`` keeps a copy of its first value on that device, and functions
capture the copy. In a file the copy would be a constant, which assignments and training do not
change.

RFC: PRIM-01
"""

from __future__ import annotations

import dataclasses

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import base_name
from reference_impl.functions.names import ExportName
from reference_impl.graph.function_builder import FunctionBuilder, replace_tensors
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.traces import Trace


def read_variables(
    trace: Trace, name: ExportName, library: ExportLibrary
) -> tuple[Trace, ExportName]:
    """Return a trace that captures variables instead of their cached values, and the name of its
    function.

    If the trace captures cached values, a changed function is added to the library.
    """
    cached = api.cached_variables(trace.captures)
    if not cached:
        return trace, name
    captures = list(trace.captures)
    builder = FunctionBuilder.copy_of(library.definitions[name])
    first = len(builder.function.signature.input_arg) - len(captures)
    for index, variable in cached.items():
        captures[index] = api.variable_components(variable)[0].handle
        _read(builder, first + index)
    changed = library.write(builder.function, base_name(name))
    return dataclasses.replace(trace, captures=captures), changed


def _read(builder: FunctionBuilder, index: int) -> None:
    """Turn an argument into the handle of a variable; its uses read the variable before it can
    change.
    """
    definition = builder.function
    argument = definition.signature.input_arg[index]
    handles = {
        other.name for other in definition.signature.input_arg if other.type == schema.DT_RESOURCE
    }
    users = [node for node in definition.node_def if handles.intersection(node.input)]
    read = builder.node(f"{argument.name}_read", "ReadVariableOp")
    read.attr["dtype"].type = argument.type
    value = f"{read.name}:value:0"
    replace_tensors(definition, lambda text: value if text == argument.name else text)
    read.input.append(argument.name)
    for node in users:
        node.input.append(f"^{read.name}")
    argument.type = schema.DT_RESOURCE
    argument.ClearField("handle_data")
    definition.arg_attr.pop(index, None)
    definition.signature.is_stateful = True
    if "_input_shapes" in definition.attr:
        definition.attr["_input_shapes"].list.shape[index].CopyFrom(schema.TensorShapeProto())
