"""Nodes that make a handle which outlives a call: variables, tables, iterators, queues.

A session finds such state by its shared name alone, so two nodes of one name are one resource.
"""

from __future__ import annotations

from typing import Any

from reference_impl.format import schema
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable


def makes_shared_handle(ops: OpTable, node: schema.NodeDef) -> bool:
    """Return whether the one result of a node is a handle that outlives a call.

    Variables are excluded.

    Resources of one call (TensorArrays, stacks) have no shared name.
    """
    definition = ops.get(node.op) if node.op != "VarHandleOp" else None
    if definition is None or not definition.is_stateful:
        return False
    if [result.type for result in definition.output_arg] != [schema.DT_RESOURCE]:
        return False
    return "shared_name" in node.attr or any(attr.name == "shared_name" for attr in definition.attr)


def merge_by_shared_name(graph: Graph, ops: OpTable, inlined: frozenset[str]) -> None:
    """Merge the nodes of one shared name, in place: the first makes the handle, the others pass it
    on.

    Resources are merged only if a function makes one, so that one of the nodes is `inlined`.
    """
    found: dict[tuple[Any, ...], list[schema.NodeDef]] = {}
    for node in graph:
        shared = node.attr["shared_name"].s if "shared_name" in node.attr else b""
        if shared and (node.op == "VarHandleOp" or makes_shared_handle(ops, node)):
            found.setdefault(_identity(node, shared), []).append(node)
    for first, *others in found.values():
        from_function = any(node.name in inlined for node in (first, *others))
        if first.op == "VarHandleOp" or from_function:
            for node in others:
                _pass_on(first, node)


def _identity(node: schema.NodeDef, shared: bytes) -> tuple[Any, ...]:
    """Return what two nodes of one resource have in common."""
    keys = ("dtype", "key_dtype", "value_dtype")
    kinds = [node.attr[key].type for key in keys if key in node.attr]
    container = node.attr["container"].s if "container" in node.attr else b""
    return (node.op, container, shared, *kinds)


def _pass_on(first: schema.NodeDef, node: schema.NodeDef) -> None:
    """Make a node an Identity of the handle that the first node makes."""
    identity = schema.NodeDef(name=node.name, op="Identity", input=[first.name], device=node.device)
    identity.attr["T"].type = schema.DT_RESOURCE
    node.CopyFrom(identity)
