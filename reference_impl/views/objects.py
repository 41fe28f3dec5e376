"""The object graph as data: node kinds, names, paths, shared nodes and cycles.

RFC: FMT-01, RP-01
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph import node_kinds
from reference_impl.graph.object_graph import Paths
from reference_impl.views.text import dtype_name, spec_text
from reference_impl.views.types import Child, ObjectNode


def objects(
    graph: schema.SavedObjectGraph,
    paths: Paths,
    keys: dict[int, dict[str, str]],
    extension: Optional[schema.Extension] = None,
) -> tuple[ObjectNode, ...]:
    """Describe every node of the object graph in the order of their ids.

    `keys` come from `object_graph.checkpoint_keys`.
    """
    found = []
    more = _extension_details(extension) if extension is not None else {}
    for number, node in enumerate(graph.nodes):
        details = {**_details(node), **more.get(number, {})}
        if number in keys:
            details["checkpoint_keys"] = keys[number]
        children = tuple([Child(child.local_name, child.node_id) for child in node.children])
        kind = node.WhichOneof("kind") or "none"
        found.append(
            ObjectNode(number, paths.text(number), kind, children, node.registered_name, details)
        )
    return tuple(found)


def _extension_details(extension: schema.Extension) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for state in extension.registered:
        keys = [*state.values.dict_value.fields, *state.blobs]
        found.setdefault(state.node_id, {})["registered_state"] = sorted(keys)
    for item in extension.initial_values:
        found.setdefault(item.node_id, {})["initial_value"] = item.function
    for optimizer in extension.optimizers:
        if optimizer.updates:
            rules = {dtype_name(update.dtype): update.function for update in optimizer.updates}
            found.setdefault(optimizer.node_id, {})["update_rules"] = dict(sorted(rules.items()))
    return found


def node_text(node: schema.SavedObject) -> str:
    """Return the kind of a node with the facts of its message, e.g. ``variable float32[2,3]``."""
    kind = node_kinds.of_node(node)
    if kind is None:
        return node.WhichOneof("kind") or "no kind"
    said = _TEXTS[kind.field](node) if kind.field in _TEXTS else ""
    return f"{kind.field}{said}"


_TEXTS: dict[str, Callable[[schema.SavedObject], str]] = {
    node_kinds.VARIABLE.field: lambda node: (
        f" {spec_text(node.variable.dtype, node.variable.shape)}"
    ),
    node_kinds.USER_OBJECT.field: lambda node: (
        f" {node.registered_name or node.user_object.identifier}"
    ),
    node_kinds.FUNCTION.field: lambda node: f", traces: {len(node.function.concrete_functions)}",
    node_kinds.BARE_CONCRETE_FUNCTION.field: lambda node: (
        f" {node.bare_concrete_function.concrete_function_name}"
    ),
    node_kinds.CONSTANT.field: lambda node: f" {node.constant.operation}",
    node_kinds.CAPTURED_TENSOR.field: lambda node: f" {node.captured_tensor.name}",
    node_kinds.ASSET.field: lambda node: f" {node.asset.asset_file_def_index}",
}


def _details(node: schema.SavedObject) -> dict[str, Any]:
    kind = node.WhichOneof("kind")
    details: dict[str, Any] = _KINDS[kind](getattr(node, kind)) if kind in _KINDS else {}
    if node.saveable_objects:
        details["saveable_objects"] = {
            name: {"save_function": item.save_function, "restore_function": item.restore_function}
            for name, item in sorted(node.saveable_objects.items())
        }
    if node.slot_variables:
        details["slots"] = [
            {
                "name": slot.slot_name,
                "variable": slot.original_variable_node_id,
                "slot": slot.slot_variable_node_id,
            }
            for slot in node.slot_variables
        ]
    if node.registered_saver:
        details["registered_saver"] = node.registered_saver
    return details


def _variable(variable: schema.SavedVariable) -> dict[str, Any]:
    shape = shape_of(variable.shape)
    return {
        "name": variable.name,
        "dtype": dtype_name(variable.dtype),
        "shape": None if shape is None else list(shape),
        "trainable": variable.trainable,
        "synchronization": _enum(schema.VariableSynchronization, variable.synchronization),
        "aggregation": _enum(schema.VariableAggregation, variable.aggregation),
        "device": variable.device,
        "components": len(variable.experimental_distributed_variable_components),
    }


def _enum(kind: Any, number: int) -> str:
    """Return ``ON_READ`` of ``VARIABLE_SYNCHRONIZATION_ON_READ``."""
    name: str = kind.Name(number) if number in kind.values() else str(number)
    return name.partition("TION_")[2] or name


_KINDS: dict[Optional[str], Any] = {
    "user_object": lambda item: {
        "identifier": item.identifier,
        "version": item.version.producer,
        "metadata_bytes": len(item.metadata),
    },
    "asset": lambda item: {"asset": item.asset_file_def_index},
    "function": lambda item: {"traces": list(item.concrete_functions)},
    "variable": _variable,
    "bare_concrete_function": lambda item: {
        "function": item.concrete_function_name,
        "arguments": list(item.argument_keywords),
    },
    "constant": lambda item: {"operation": item.operation},
    "resource": lambda item: {"device": item.device},
    "captured_tensor": lambda item: {"tensor": item.name, "function": item.concrete_function},
}
