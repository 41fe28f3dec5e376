"""Functions that captured the cached value of a variable, made to read the variable (PRIM-01).

A variable with a ``caching_device`` keeps a copy of its first value there. Functions capture the copy. In a file that would be
a constant that no assignment and no training changes.
"""

from __future__ import annotations

import dataclasses

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import stem
from reference_impl.saving.functions import Library
from reference_impl.saving.traces import Trace


def read_variables(trace: Trace, name: str, library: Library) -> tuple[Trace, str]:
    """Return a trace that captures variables in place of their cached values, and the name of its function.

    Args:
      trace: of a function.
      name: of the function in the export.
      library: of the export. It gets another function if there is something to change.
    """
    captures = list(trace.captures)
    definition = schema.FunctionDef()
    definition.CopyFrom(library.definitions[name])
    first = len(definition.signature.input_arg) - len(captures)
    found = False
    for index, capture in enumerate(captures):
        variable = api.cached_variable(capture)
        if variable is not None:
            captures[index] = api.variable_components(variable)[0].handle
            _read(definition, first + index)
            found = True
    return (dataclasses.replace(trace, captures=captures), library.write(definition, stem(name))) if found else (trace, name)


def _read(definition: schema.FunctionDef, index: int) -> None:
    """Make an argument the handle of a variable, and read it, before it can change, where the argument was used."""
    argument = definition.signature.input_arg[index]
    taken = {node.name for node in definition.node_def}
    name = f"{argument.name}_read"
    while name in taken:
        name += "_"
    value = f"{name}:value:0"
    handles = {other.name for other in definition.signature.input_arg if other.type == schema.DT_RESOURCE}
    for node in definition.node_def:
        changes = [f"^{name}"] if handles.intersection(node.input) else []
        node.input[:] = [value if source == argument.name else source for source in node.input] + changes
    for result, source in list(definition.ret.items()):
        definition.ret[result] = value if source == argument.name else source
    read = definition.node_def.add(name=name, op="ReadVariableOp", input=[argument.name])
    read.attr["dtype"].type = argument.type
    argument.type = schema.DT_RESOURCE
    argument.ClearField("handle_data")
    definition.arg_attr.pop(index, None)
    definition.signature.is_stateful = True
    if "_input_shapes" in definition.attr:
        definition.attr["_input_shapes"].list.shape[index].CopyFrom(schema.TensorShapeProto())
