"""Tables of a TF 1.x graph as resources that can be saved again.

A session has one init op for everything, while a resource needs its own part of that op. A mutable
table, whose content the Saver saved, also needs functions that return and replace its content.

RFC: RES-03, RES-15, V1-16, V1-17
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.format.names import INITIALIZE
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.kinds.resource import LoadedResource
from reference_impl.v1.reading.extract import Extracted
from reference_impl.v1.reading.program import Program

KEYS, VALUES = "-keys", "-values"  # the names under which TF 2 stores the content of a table

MakeFunction = Callable[[Extracted, Any, Any], Any]


def attach(resource: LoadedResource, name: str, program: Program, function: MakeFunction) -> None:
    """Attach the initialiser to the resource of the node `name`, and the save and restore functions
    to a mutable table.

    `function` makes a live function of (extracted, input specs by name or in order, output spec).
    """
    targets = program.initializers_of(name)
    if targets:
        extracted = program.function(f"initialize_{name}", [], {}, targets)
        fill = resource.functions[INITIALIZE] = function(extracted, {}, {})
        fill.refer_weakly_to(resource)
    node = program.graph.nodes[name]
    if node.op.startswith("Mutable"):
        key, value = node.attr["key_dtype"].type, node.attr["value_dtype"].type
        specs = {
            KEYS: tf.TensorSpec(None, tf.dtypes.as_dtype(key)),
            VALUES: tf.TensorSpec(None, tf.dtypes.as_dtype(value)),
        }
        save = function(_export(name, key, value), {}, specs)
        restore = function(_import(name, key, value), (specs,), None)
        for made in (save, restore):
            made.refer_weakly_to(resource)
        resource.set_content(save, restore)


def _export(name: str, key: int, value: int) -> Extracted:
    """Return the function that returns the content of a table."""
    builder = FunctionBuilder(f"save_{name}", is_stateful=True)
    node = builder.node(
        "export", "LookupTableExportV2", [builder.argument("table", schema.DT_RESOURCE)]
    )
    node.attr["Tkeys"].type, node.attr["Tvalues"].type = key, value
    for result, kind in (("keys", key), ("values", value)):
        builder.result(result, f"{node.name}:{result}:0", kind)
    return Extracted(builder.function, (name,), (KEYS, VALUES))


def _import(name: str, key: int, value: int) -> Extracted:
    """Return the function that replaces the content of a table."""
    builder = FunctionBuilder(f"restore_{name}", is_stateful=True)
    keys, values, table = (
        builder.argument(*item)
        for item in (("keys", key), ("values", value), ("table", schema.DT_RESOURCE))
    )
    node = builder.node("import", "LookupTableImportV2", [table, keys, values])
    node.attr["Tin"].type, node.attr["Tout"].type = key, value
    builder.control_output(node.name)
    return Extracted(builder.function, (name,), ())
