"""Describe variables: SavedVariable nodes of TF 2.x, and graph nodes and collections of TF 1.x.

RFC: FMT-12, RP-03
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.names import VALUE, checkpoint_key, key_prefix
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.restore_plan import Restored
from reference_impl.graph.variable_defs import (
    REFERENCE_OPS,
    VARIABLE_OPS,
    trainable_nodes,
    variable_defs,
)
from reference_impl.views.text import dtype_name
from reference_impl.views.types import Shape, Variable


def object_variables(
    graph: schema.SavedObjectGraph,
    paths: Paths,
    keys: dict[int, dict[str, str]],
    plan: Iterable[Restored],
    entries: Mapping[str, Any],
) -> tuple[Variable, ...]:
    """Describe the variables of an object graph, reachable ones first.

    `keys` come from `object_graph.checkpoint_keys`. Without a key and a checkpoint (`entries`),
    the key is derived from the path.
    """
    restored = {item.key: item for item in plan}
    found = []
    for number in dict.fromkeys([*paths.order, *range(len(graph.nodes))]):
        if not graph.nodes[number].HasField("variable"):
            continue
        variable = graph.nodes[number].variable
        key = keys[number].get(VALUE) if number in keys else None
        if not entries and key is None:
            key = _expected_key(paths.names(number))
        plan_entry = restored.get(key or "")
        found.append(
            Variable(
                variable.name,
                paths.text(number),
                "resource",
                dtype_name(variable.dtype),
                shape_of(variable.shape),
                _size(entries, key),
                variable.trainable,
                key,
                key is not None and key in entries,
                None,
                plan_entry.node if plan_entry else None,
                variable.device,
            )
        )
    return tuple(found)


def _expected_key(names: Optional[tuple[str, ...]]) -> Optional[str]:
    """Return the key that a checkpoint would use for an object with this path."""
    if not names or names[0] == "…":
        return None
    return checkpoint_key(key_prefix(names), VALUE)


def _size(entries: Mapping[str, Any], key: Optional[str]) -> Optional[int]:
    entry = entries.get(key or "")
    return None if entry is None else stored_size(entry)


def stored_size(entry: Entry) -> Optional[int]:
    """Return the size of a stored value, in bytes.

    It is unknown for partitioned strings, whose bytes are in the parts.
    """
    if not entry.slices:
        return int(entry.size)
    return None if entry.dtype.itemsize is None else int(entry.elements * entry.dtype.itemsize)


def graph_variables(
    view: GraphView, plan: Iterable[Restored], entries: Mapping[str, Any]
) -> tuple[Variable, ...]:
    """Describe the variables of a MetaGraph without an object graph, in the order of the graph.

    Without a collection of variables it is unknown which are trainable.

    RFC: V1-01
    """
    restored: dict[str, Restored] = {}
    for read in plan:
        restored.setdefault(read.node, read)
    definitions: dict[str, schema.VariableDef] = {}
    for _, node_name, definition in variable_defs(view.proto, lenient=True):
        definitions.setdefault(node_name, definition)
    trainable = trainable_nodes(view.proto, lenient=True)
    found = []
    for node_name, op, node in zip(view.main.names, view.main.ops, view.main.messages):
        if op not in VARIABLE_OPS:
            continue
        item = restored.get(node_name)
        key = item.key if item else None
        name = (
            definitions[node_name].variable_name.rpartition(":")[0]
            if node_name in definitions
            else node_name
        )
        dtype = node.attr["dtype"].type if "dtype" in node.attr else 0
        shape: Shape = shape_of(node.attr["shape"].shape) if "shape" in node.attr else None
        size = _size(entries, key)
        found.append(
            Variable(
                name or node_name,
                None,
                "reference" if op in REFERENCE_OPS else "resource",
                dtype_name(dtype),
                shape,
                _part_size(size, shape, entries, key) if item and item.slice else size,
                node_name in trainable if definitions else None,
                key,
                key is not None and key in entries,
                item.slice if item and item.slice else None,
                node_name,
                node.device,
            )
        )
    return tuple(found)


def _part_size(
    whole: Optional[int], shape: Shape, entries: Mapping[str, Any], key: Optional[str]
) -> Optional[int]:
    """Return the bytes of one part of a partitioned variable, from the shape of the part."""
    if whole is None or shape is None or None in shape or not entries[key or ""].dtype.itemsize:
        return None
    return int(entries[key or ""].dtype.itemsize) * math.prod(extent or 0 for extent in shape)
