"""An order and a numbering of a graph's nodes that depend on what they compute, not on how they are called or stored.

Starting from the graph's results, inputs are followed in their order: that numbers everything that a result needs in one
way only. Where the graph itself has no order (control edges, nodes that nobody uses) nodes are sorted by a *colour*: a hash
of what a node is, what it needs, and what needs it. Nodes of the same colour are exchangeable, up to exotic graphs that
colours cannot tell apart; there the names decide, which two exports share as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Union

from reference_impl.graph.order import components

_ROUNDS = 16  # inside a cycle a colour sees this many steps far


def digest(*parts: bytes) -> bytes:
    """SHA-256 of several byte strings; where one ends and the next begins matters."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


class Digraph:
    """Vertices 0 … n-1, each with a hash of its own, and edges to what it needs.

    Args:
      base: what each vertex is, apart from its edges.
      ordered: for each vertex its inputs in order, as (label, vertex); the label says which output is meant.
      unordered: for each vertex the vertices it must come after.
      tie: gives for a vertex what decides where nothing else does.
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
        """A hash per vertex of everything it needs, to any depth. ``base`` replaces the vertices' own hashes."""
        edges = self._labelled()
        if base is not self.base:
            return _spread(base, edges, self._order)
        if self._needs is None:
            self._needs = _spread(base, edges, self._order)
        return self._needs

    def colours(self) -> list[bytes]:
        """A hash per vertex of all its surroundings: what it needs, by whom that is needed, and so on."""
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
        """All edges of each vertex with labels that hold their position, so that their order no longer matters."""
        if self._edges is None:
            self._edges = [
                [(b"%d %b" % (position, label), target) for position, (label, target) in enumerate(ordered)]
                + [(b"^", target) for target in unordered]
                for ordered, unordered in zip(self.ordered, self.unordered)
            ]
            self._order = _arranged(self._edges)
        return self._edges

    def needed(self, roots: Iterable[int]) -> bytearray:
        """Which vertices the roots need, themselves included, as a flag for each."""
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
        """Take vertices away that no other vertex needs; their numbers stay free."""
        for vertex in vertices:
            self.dropped[vertex] = 1
            self.ordered[vertex], self.unordered[vertex] = [], []

    def number(self, roots: Iterable[int], root_sets: Iterable[Sequence[int]] = ()) -> list[int]:
        """Bring all vertices into their canonical order.

        Args:
          roots: vertices in a given order.
          root_sets: further groups of vertices, each without an order of its own.

        Returns:
          The vertices in order: first what the roots need, then what nobody asks for.
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

    def _visit(self, stack: list[Union[int, Sequence[int]]], order: list[int], seen: bytearray) -> None:
        """Vertices with all that they need: first their inputs, in order, then what they must come after.

        Args:
          stack: vertices, and groups of vertices that have no order; the last comes first. A group is sorted when its turn comes:
            mostly only one of it is left by then, and colours, which cost more than all the rest, are not asked for.
        """
        while stack:
            item = stack.pop()
            if not isinstance(item, int):
                left = [vertex for vertex in item if not seen[vertex]]
                stack.extend(left if len(left) < 2 else reversed(self._sorted(left, self.colours())))
            elif not seen[item]:
                seen[item] = 1
                order.append(item)
                if self.unordered[item]:
                    stack.append(self.unordered[item])
                stack.extend([target for _, target in reversed(self.ordered[item])])

    def _visit_rest(self, rest: list[int], order: list[int], seen: bytearray) -> None:
        """Vertices that no root needs: those that nothing uses first, then what is left of cycles."""
        used = {target for vertex in rest for _, target in self.ordered[vertex]}
        used.update(target for vertex in rest for target in self.unordered[vertex])
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
    """Vertices in an order in which targets come first; those of a cycle together, as a list."""
    if all(target < vertex for vertex, targets in enumerate(edges) for _, target in targets):
        return list(range(len(edges)))  # how most writers order their nodes
    found: list[Union[int, list[int]]] = []
    for component in components([[target for _, target in targets] for targets in edges]):
        alone = len(component) == 1 and all(target != component[0] for _, target in edges[component[0]])
        found.append(component[0] if alone else component)
    return found


def _spread(
    base: Sequence[bytes], edges: Sequence[Sequence[tuple[bytes, int]]], order: Iterable[Union[int, list[int]]]
) -> list[bytes]:
    """Hash every vertex with the hashes of its targets.

    Args:
      base: a hash per vertex.
      edges: (label, target) per vertex, in any order.
      order: what `_arranged` makes of them.
    """
    result = list(base)

    def mixed(vertex: int) -> bytes:
        return digest(base[vertex], *sorted([label + b"\0" + result[target] for label, target in edges[vertex]]))

    for item in order:
        if isinstance(item, int):
            result[item] = mixed(item)
            continue
        # In a cycle nobody is first: all vertices step forward together, and each finally takes in the whole cycle.
        for _ in range(min(len(item), _ROUNDS)):
            for vertex, colour in [(vertex, mixed(vertex)) for vertex in item]:
                result[vertex] = colour
        whole = digest(*sorted([result[vertex] for vertex in item]))
        for vertex in item:
            result[vertex] = digest(result[vertex], whole)
    return result
