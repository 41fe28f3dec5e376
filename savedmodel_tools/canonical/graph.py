"""Order and number a graph's nodes by what they compute, not by how they are named or stored.

Starting from the graph's results, inputs are followed in their order, which numbers every node that
a result needs unambiguously. Where the graph has no order (control edges, unused nodes), nodes are
sorted by a *colour*: a hash of the node, of what it needs, and of what needs it. Nodes of the same
colour are interchangeable, except in exotic graphs that colours cannot tell apart. There the names
decide, which two exports also share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Union

from reference_impl.graph.order import components

_ROUNDS = 16  # number of steps that a colour sees inside a cycle


def digest(*parts: bytes) -> bytes:
    """Return the SHA-256 of several byte strings; the boundaries between the strings count."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


class Digraph:
    """Vertices 0 … n-1, each with its own hash and with edges to the vertices it needs.

    Args:
      base: a hash of each vertex, apart from its edges.
      ordered: for each vertex its inputs in order, as (label, vertex); the label names the output.
      unordered: for each vertex the vertices that it must follow.
      tie: returns the last tie-breaker for a vertex.
    """

    def __init__(
        self,
        base: Sequence[bytes],
        ordered: list[list[tuple[bytes, int]]],
        unordered: list[list[int]],
        tie: Callable[[int], str],
    ):
        self.base = base
        self.ordered = ordered
        self.unordered = unordered
        self.tie = tie
        self.dropped = bytearray(len(base))
        self._colours: list[bytes] | None = None
        self._edges: list[list[tuple[bytes, int]]] | None = None
        self._order: list[Union[int, list[int]]] = []
        self._needs: list[bytes] | None = None

    def needs(self, base: Sequence[bytes]) -> list[bytes]:
        """Return a hash per vertex of everything it needs, to any depth.

        ``base`` replaces the vertices' own hashes.
        """
        edges = self._labelled()
        if base is not self.base:
            return _spread(base, edges, self._order)
        if self._needs is None:
            self._needs = _spread(base, edges, self._order)
        return self._needs

    def colours(self) -> list[bytes]:
        """Return a hash per vertex of all its surroundings: the vertices it needs, their other
        users, and so on.
        """
        if self._colours is None:
            self._colours = self._refine(self.base)
        return self._colours

    def _refine(self, base: Sequence[bytes]) -> list[bytes]:
        edges = self._labelled()
        users: list[list[tuple[bytes, int]]] = [[] for _ in edges]
        for vertex, targets in enumerate(edges):
            for label, target in targets:
                users[target].append((label, vertex))
        up = _spread(self.needs(base), users, reversed(self._order))
        return _spread(up, edges, self._order)

    def _labelled(self) -> list[list[tuple[bytes, int]]]:
        """Return all edges of each vertex with labels that hold their position, so that their order
        no longer matters.
        """
        if self._edges is None:
            self._edges = list(map(_all_labelled, self.ordered, self.unordered))
            self._order = _arranged(self._edges)
        return self._edges

    def needed(self, roots: Iterable[int]) -> bytearray:
        """Return a flag for each vertex: whether the roots need it. Roots count as needed."""
        flags = bytearray(len(self.base))
        stack = list(roots)
        while stack:
            vertex = stack.pop()
            if not flags[vertex]:
                flags[vertex] = 1
                stack.extend([target for _, target in self.ordered[vertex]])
                stack.extend(self.unordered[vertex])
        return flags

    def drop(self, vertices: Iterable[int]) -> None:
        """Remove vertices that no other vertex needs; their numbers stay unused."""
        for vertex in vertices:
            self.dropped[vertex] = 1
            self.ordered[vertex], self.unordered[vertex] = [], []

    def number(self, roots: Iterable[int], root_sets: Iterable[Sequence[int]] = ()) -> list[int]:
        """Return all vertices in their canonical order: first those that the roots need, then the
        rest.

        ``roots`` have an order; ``root_sets`` are further groups of vertices, each without an
        order.
        """
        order: list[int] = []
        seen = bytearray(self.dropped)
        for root in roots:
            self._visit([root], order, seen)
        for group in root_sets:
            self._visit([group], order, seen)
        rest = [vertex for vertex in range(len(self.base)) if not seen[vertex]]
        if rest:
            self._visit_rest(rest, order, seen)
        return order

    def _visit(
        self, stack: list[Union[int, Sequence[int]]], order: list[int], seen: bytearray
    ) -> None:
        """Visit vertices with all that they need: first their inputs, in order, then the vertices
        they must follow.

        ``stack``: vertices, and groups of vertices without an order; the last comes first. A group
        is sorted only when it is reached: usually only one of its vertices is left by then, and the
        expensive colours are not needed.
        """
        while stack:
            item = stack.pop()
            if not isinstance(item, int):
                left = [vertex for vertex in item if not seen[vertex]]
                stack.extend(
                    left if len(left) < 2 else reversed(self._sorted(left, self.colours()))
                )
            elif not seen[item]:
                seen[item] = 1
                order.append(item)
                if self.unordered[item]:
                    stack.append(self.unordered[item])
                stack.extend([target for _, target in reversed(self.ordered[item])])

    def _visit_rest(self, rest: list[int], order: list[int], seen: bytearray) -> None:
        """Visit vertices that no root needs: first the unused ones, then the rest of the cycles."""
        used: set[int] = set()
        for vertex in rest:
            used.update([target for _, target in self.ordered[vertex]])
            used.update(self.unordered[vertex])
        placed, colours = order[:], None
        for group in ([vertex for vertex in rest if vertex not in used], rest):
            left = [vertex for vertex in group if not seen[vertex]]
            if len(left) > 1:
                if colours is None:
                    base = list(self.base)
                    for position, vertex in enumerate(placed):
                        base[vertex] = digest(base[vertex], b"%d" % position)
                    colours = self._refine(base)
                left = self._sorted(left, colours)
            self._visit([*reversed(left)], order, seen)

    def _sorted(self, vertices: Sequence[int], colours: Sequence[bytes]) -> list[int]:
        return sorted(vertices, key=lambda vertex: (colours[vertex], self.tie(vertex)))


def _arranged(edges: Sequence[Sequence[tuple[bytes, int]]]) -> list[Union[int, list[int]]]:
    """Return the vertices in an order in which targets come first; the vertices of a cycle form one
    list.
    """
    if _targets_come_first(edges):
        return list(range(len(edges)))  # most writers order their nodes this way
    targets = list(map(_targets, edges))
    found: list[Union[int, list[int]]] = []
    for component in components(targets):
        alone = len(component) == 1 and component[0] not in targets[component[0]]
        found.append(component[0] if alone else component)
    return found


def _targets_come_first(edges: Sequence[Sequence[tuple[bytes, int]]]) -> bool:
    for vertex, labelled in enumerate(edges):
        for _, target in labelled:
            if target >= vertex:
                return False
    return True


def _targets(labelled: Sequence[tuple[bytes, int]]) -> list[int]:
    return [target for _, target in labelled]


def _all_labelled(
    ordered: Sequence[tuple[bytes, int]], unordered: Iterable[int]
) -> list[tuple[bytes, int]]:
    """Return the edges of a vertex: the label of an ordered one begins with its position."""
    edges = [
        (b"%d %b" % (position, label), target) for position, (label, target) in enumerate(ordered)
    ]
    return edges + [(b"^", target) for target in unordered]


def _spread(
    base: Sequence[bytes],
    edges: Sequence[Sequence[tuple[bytes, int]]],
    order: Iterable[Union[int, list[int]]],
) -> list[bytes]:
    """Hash every vertex with the hashes of its targets, (label, target) in any order.

    ``order``: `_arranged` of the edges.
    """
    result = list(base)

    def mixed(vertex: int) -> bytes:
        return digest(
            base[vertex],
            *sorted([label + b"\0" + result[target] for label, target in edges[vertex]]),
        )

    for item in order:
        if isinstance(item, int):
            result[item] = mixed(item)
            continue
        # A cycle has no first vertex: all vertices step together, and each finally includes the
        # whole cycle.
        for _ in range(min(len(item), _ROUNDS)):
            for vertex, colour in [(vertex, mixed(vertex)) for vertex in item]:
                result[vertex] = colour
        whole = digest(*sorted([result[vertex] for vertex in item]))
        for vertex in item:
            result[vertex] = digest(result[vertex], whole)
    return result
