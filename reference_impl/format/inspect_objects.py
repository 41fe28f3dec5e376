"""The object graph as data: node kinds, names, paths, shared nodes and cycles (FMT-01, RP-01).

Paths are found by a walk from the root and kept as links to the parent, so a chain of a million objects costs no more than
its length; only the last names of a deep path are written out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Optional

from . import schema
from .inspect_text import dtype_name, shape_of
from .inspect_types import Child, ObjectNode

_SHOWN_DEPTH = 32


class Paths:
    """The shortest path of every node of an object graph from node 0, as far as one leads there.

    Args:
      nodes: messages with ``children`` (``node_id``, ``local_name``): a SavedObjectGraph's or a TrackableObjectGraph's.

    Attributes:
      order: ids of the nodes that a path leads to, nearest first.
    """

    def __init__(self, nodes: Sequence[Any]):
        self._parents: list[Optional[tuple[int, str]]] = [None] * len(nodes)
        self._known = bytearray(len(nodes))
        self.order: list[int] = []
        queue = deque([0] if nodes else [])
        if nodes:
            self._known[0] = 1
        while queue:
            current = queue.popleft()
            self.order.append(current)
            for child in nodes[current].children:
                if 0 <= child.node_id < len(nodes) and not self._known[child.node_id]:
                    self._known[child.node_id] = 1
                    self._parents[child.node_id] = current, child.local_name
                    queue.append(child.node_id)

    def names(self, node: int) -> Optional[tuple[str, ...]]:
        """The names on the path; None for a node that no path leads to. Of a deep path ``…`` and the last names."""
        if not 0 <= node < len(self._known) or not self._known[node]:
            return None
        found: list[str] = []
        parent = self._parents[node]
        while parent is not None:
            if len(found) == _SHOWN_DEPTH:
                found.append("…")
                break
            found.append(parent[1])
            parent = self._parents[parent[0]]
        return tuple(reversed(found))

    def text(self, node: int) -> Optional[str]:
        """The path joined by dots: empty for the root, None for a node that no path leads to."""
        names = self.names(node)
        return None if names is None else ".".join(names)

    def label(self, node: int) -> str:
        """How to speak of a node in any case: its path, ``(root)`` or ``(node 7)``."""
        text = self.text(node)
        return f"(node {node})" if text is None else text or "(root)"


def counterparts(saved: schema.SavedObjectGraph, tracked: schema.TrackableObjectGraph) -> dict[int, dict[str, str]]:
    """Match the object graph of a SavedModel with the one in its checkpoint, by walking both from the root at once.

    The two number their nodes differently, and the checkpoint's lacks functions. A slot variable is reached from its
    optimizer.

    Returns:
      id in ``saved`` -> {attribute name: checkpoint key}; nodes without attributes are left out.
    """
    pairs = matched(saved, tracked).items()
    attributes = ((here, tracked.nodes[there].attributes) for here, there in pairs)
    return {here: {item.name: item.checkpoint_key for item in items} for here, items in attributes if items}


def matched(saved: schema.SavedObjectGraph, tracked: schema.TrackableObjectGraph) -> dict[int, int]:
    """id in ``saved`` -> id in ``tracked``, found as `counterparts` does."""
    found: dict[int, int] = {}
    if not saved.nodes or not tracked.nodes:
        return found
    seen = {0}
    pairs = deque([(0, 0)])
    while pairs:
        here, there = pairs.popleft()
        found[here] = there
        theirs = tracked.nodes[there]
        ours = {child.local_name: child.node_id for child in saved.nodes[here].children}
        links = [(ours.get(child.local_name), child.node_id) for child in theirs.children]
        slots = [(slot.slot_name, slot.slot_variable_node_id) for slot in saved.nodes[here].slot_variables]
        if slots:
            links += _slot_links(slots, theirs)
        for mine, other in links:
            if mine is not None and mine not in seen and 0 <= mine < len(saved.nodes) and 0 <= other < len(tracked.nodes):
                seen.add(mine)
                pairs.append((mine, other))
    return found


def _slot_links(slots: list[tuple[str, int]], theirs: Any) -> list[tuple[Optional[int], int]]:
    """Slots are matched in order, name by name: both graphs list them in the order of the optimizer (OPT-02)."""
    ours: dict[str, deque[int]] = {}
    for name, node in slots:
        ours.setdefault(name, deque()).append(node)
    links: list[tuple[Optional[int], int]] = []
    for slot in theirs.slot_variables:
        waiting = ours.get(slot.slot_name)
        links.append((waiting.popleft() if waiting else None, slot.slot_variable_node_id))
    return links


def objects(
    graph: schema.SavedObjectGraph,
    paths: Paths,
    keys: dict[int, dict[str, str]],
    extension: Optional[schema.Extension] = None,
) -> tuple[ObjectNode, ...]:
    """Every node of the object graph in order of its id.

    Args:
      graph: the object graph.
      paths: its paths.
      keys: checkpoint keys from :func:`counterparts`.
      extension: what the file says beyond the format.
    """
    found = []
    more = _extension_details(extension) if extension is not None else {}
    for number, node in enumerate(graph.nodes):
        details = {**_details(node), **more.get(number, {})}
        if number in keys:
            details["checkpoint_keys"] = keys[number]
        children = tuple([Child(child.local_name, child.node_id) for child in node.children])
        kind = node.WhichOneof("kind") or "none"
        found.append(ObjectNode(number, paths.text(number), kind, children, node.registered_name, details))
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
            {"name": slot.slot_name, "variable": slot.original_variable_node_id, "slot": slot.slot_variable_node_id}
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
    """``ON_READ`` of ``VARIABLE_SYNCHRONIZATION_ON_READ``."""
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
    "bare_concrete_function": lambda item: {"function": item.concrete_function_name, "arguments": list(item.argument_keywords)},
    "constant": lambda item: {"operation": item.operation},
    "resource": lambda item: {"device": item.device},
    "captured_tensor": lambda item: {"tensor": item.name, "function": item.concrete_function},
}
