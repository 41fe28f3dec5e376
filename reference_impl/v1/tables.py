"""Tables of a TF 1.x graph as resources that can be saved again (RES-03, RES-15, V1-16, V1-17).

A session has one init op for everything. A resource that goes on living needs to know its own part of it, and a mutable table,
whose content the Saver kept, needs functions that put the content out and take it in.
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.graph.op_table import RESOURCE
from reference_impl.kinds.resource import INITIALIZE, LoadedResource
from reference_impl.v1.extract import Extracted
from reference_impl.v1.program import Program

KEYS, VALUES = "-keys", "-values"  # the names under which TF 2 stores the content of a table

MakeFunction = Callable[[Extracted, Any, Any], Any]


def attach(resource: LoadedResource, name: str, program: Program, function: MakeFunction) -> None:
    """Give a resource its initialiser and, when it is a mutable table, its save and restore functions.

    Args:
      resource: made for the node `name`.
      function: makes a live function of (extracted, input specs by name or in order, output spec).
    """
    targets = program.initializers_of(name)
    if targets:
        extracted = program.function(f"initialize_{name}", [], {}, targets)
        resource.functions[INITIALIZE] = function(extracted, {}, {})
        resource.functions[INITIALIZE].belong_to(resource)
    node = program.graph.nodes[name]
    if node.op.startswith("Mutable"):
        key, value = node.attr["key_dtype"].type, node.attr["value_dtype"].type
        specs = {KEYS: tf.TensorSpec(None, tf.dtypes.as_dtype(key)), VALUES: tf.TensorSpec(None, tf.dtypes.as_dtype(value))}
        save = function(_export(name, key, value), {}, specs)
        restore = function(_import(name, key, value), (specs,), None)
        for made in (save, restore):
            made.belong_to(resource)
        resource.set_content(save, restore)


def _export(name: str, key: int, value: int) -> Extracted:
    function = schema.FunctionDef()
    function.signature.name = f"save_{name}"
    function.signature.is_stateful = True
    function.signature.input_arg.add(name="table", type=RESOURCE)
    function.signature.output_arg.add(name="keys", type=key)
    function.signature.output_arg.add(name="values", type=value)
    node = function.node_def.add(name="export", op="LookupTableExportV2", input=["table"])
    node.attr["Tkeys"].type, node.attr["Tvalues"].type = key, value
    function.ret["keys"], function.ret["values"] = "export:keys:0", "export:values:0"
    return Extracted(function, (name,), (KEYS, VALUES))


def _import(name: str, key: int, value: int) -> Extracted:
    function = schema.FunctionDef()
    function.signature.name = f"restore_{name}"
    function.signature.is_stateful = True
    for argument, kind in (("keys", key), ("values", value), ("table", RESOURCE)):
        function.signature.input_arg.add(name=argument, type=kind)
    node = function.node_def.add(name="import", op="LookupTableImportV2", input=["table", "keys", "values"])
    node.attr["Tin"].type, node.attr["Tout"].type = key, value
    function.control_ret["import"] = "import"
    function.signature.control_output.append("import")
    return Extracted(function, (name,), ())
