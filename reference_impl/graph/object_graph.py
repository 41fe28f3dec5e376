"""The object graph of a SavedModel: paths of its nodes, and the checkpoint keys of their values.

Paths are found by a walk from the root and kept as links to the parent, so a chain of a million
objects costs no more than its length; only the last names of a deep path are written out.

RFC: FMT-01, RP-01, RP-08, OPT-02
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Optional

from reference_impl.format import schema

_SHOWN_DEPTH = 32


class Paths:
    """The shortest path from node 0 to every reachable node of an object graph: of a SavedModel or
    of a checkpoint.
    """

    def __init__(self, nodes: Sequence[Any]):
        self._parents: list[Optional[tuple[int, str]]] = [None] * len(nodes)
        self._known = bytearray(len(nodes))
        self.order: list[int] = []  # ids of the nodes that a path leads to, nearest first
        queue = deque([0] if nodes else [])
        if nodes:
            self._known[0] = 1
        while queue:
            current = queue.popleft()
            self.order.append(current)
            for child in nodes[current].children:
                number = child.node_id
                if 0 <= number < len(nodes) and not self._known[number]:
                    self._known[number] = 1
                    self._parents[number] = current, child.local_name
                    queue.append(number)

    def names(self, node: int) -> Optional[tuple[str, ...]]:
        """Return the names on the path, or None for a node without a path.

        A deep path is cut to ``…`` and its last names.
        """
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

    def steps(self, node: int) -> list[tuple[int, str, int]]:
        """Return the edges on the path (parent, name, child), that from the root last, or none for
        a node without a path.
        """
        found: list[tuple[int, str, int]] = []
        parent = self._parents[node] if 0 <= node < len(self._known) else None
        while parent is not None:
            found.append((*parent, node))
            node = parent[0]
            parent = self._parents[node]
        return found

    def text(self, node: int) -> Optional[str]:
        """Return the path joined by dots: empty for the root, None for a node without a path."""
        names = self.names(node)
        return None if names is None else ".".join(names)

    def label(self, node: int) -> str:
        """Return a text for any node: its path, ``(root)`` or ``(node 7)``."""
        text = self.text(node)
        return f"(node {node})" if text is None else text or "(root)"

    def from_root(self, node: int) -> str:
        """Return the path from a loaded model to the node: ``root.layers.0``, or ``node 7`` without
        a path.
        """
        text = self.text(node)
        return f"node {node}" if text is None else f"root.{text}" if text else "root"


def checkpoint_keys(
    saved: schema.SavedObjectGraph, tracked: schema.TrackableObjectGraph
) -> dict[int, dict[str, str]]:
    """Return the checkpoint keys of the nodes of an object graph, given that of the checkpoint: id
    -> {attribute name: key}.

    RFC: RP-08, FMT-01
    """
    found = {}
    theirs = list(tracked.nodes)
    for here, there in paired_nodes(saved, tracked).items():
        keys = {item.name: item.checkpoint_key for item in theirs[there].attributes}
        if keys:
            found[here] = keys
    return found


def paired_nodes(
    saved: schema.SavedObjectGraph, tracked: schema.TrackableObjectGraph
) -> dict[int, int]:
    """Pair the nodes of the object graph of a MetaGraph with those of the object graph in its
    checkpoint: id -> id there.

    The two graphs describe the same tree with different node numbers; the checkpoint's graph lacks
    functions. Both are walked together from the root by the names of children. Then each slot
    variable is paired by its optimizer, its name and its variable, since writers do not guarantee
    an order of slots. Numbers out of range are skipped.

    RFC: RP-08, OPT-02
    """
    # Lists: a repeated field of protobuf makes a new Python object for each access.
    ours, theirs = list(saved.nodes), list(tracked.nodes)
    if not ours or not theirs:
        return {}
    pairs = {0: 0}
    queue = deque(pairs)
    while queue:
        here = queue.popleft()
        # SM-KEY-5
        twins = {child.local_name: child.node_id for child in theirs[pairs[here]].children}
        for child in ours[here].children if twins else ():
            number, twin = child.node_id, twins.get(child.local_name, -1)
            if number not in pairs and 0 <= twin < len(theirs) and 0 <= number < len(ours):
                pairs[number] = twin
                queue.append(number)
    for here, there in list(pairs.items()):
        slots = {
            (slot.slot_name, slot.original_variable_node_id): slot
            # SM-SLOT-3
            for slot in theirs[there].slot_variables
        }
        for slot in ours[here].slot_variables if slots else ():
            twin_slot = slots.get((slot.slot_name, pairs.get(slot.original_variable_node_id, -1)))
            number = slot.slot_variable_node_id
            other = -1 if twin_slot is None else twin_slot.slot_variable_node_id
            if 0 <= number < len(ours) and 0 <= other < len(theirs):
                pairs.setdefault(number, other)
    return pairs
