"""Orders of directed graphs. Graphs are untrusted: every walk is iterative and linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Optional, TypeVar

from reference_impl.graph.closure import Vertex, reachable, reversed_edges

Comparable = TypeVar("Comparable", int, str)


def targets_first(
    starts: Iterable[Vertex],
    edges: Callable[[Vertex], Iterable[Vertex]],
    on_cycle: Optional[Callable[[Vertex], Exception]] = None,
) -> list[Vertex]:
    """Return some vertices and all that can be reached from them, each after the vertices that it
    leads to.

    `edges` is called once per vertex. `on_cycle` makes the exception to raise for a vertex that
    leads to itself. Without it cycles are allowed, and the order inside a cycle is arbitrary.
    """
    complete: dict[
        Vertex, bool
    ] = {}  # whether everything that a visited vertex leads to is in `order`
    order: list[Vertex] = []
    for start in starts:
        stack = [] if start in complete else [(start, iter(edges(start)))]
        complete.setdefault(start, False)
        while stack:
            vertex, targets = stack[-1]
            for target in targets:
                if target not in complete:
                    complete[target] = False
                    stack.append((target, iter(edges(target))))
                    break
                if not complete[target] and on_cycle is not None:
                    raise on_cycle(target)
            else:
                complete[vertex] = True
                order.append(vertex)
                stack.pop()
    return order


def sources_first(sources: Mapping[Vertex, Iterable[Vertex]]) -> Optional[list[Vertex]]:
    """Return the vertices, each after its sources, or None for a graph with a cycle.

    Sources that are not keys are ignored.

    A vertex follows as soon as its last source is placed, so that the result stays close to the
    order of the mapping.
    """
    waiting = dict.fromkeys(sources, 0)
    targets: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in sources}
    for vertex, before in sources.items():
        for source in before:
            if source in targets:
                targets[source].append(vertex)
                waiting[vertex] += 1
    ready = [vertex for vertex, count in waiting.items() if count == 0][::-1]
    order = []
    while ready:
        vertex = ready.pop()
        order.append(vertex)
        for target in reversed(targets[vertex]):
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return order if len(order) == len(sources) else None


def is_in_order(sources: Mapping[Vertex, Iterable[Vertex]]) -> bool:
    """Return whether each vertex stands after its sources, as most writers write their nodes.

    Sources that are not keys are ignored.
    """
    seen: set[Vertex] = set()
    for vertex, before in sources.items():
        for source in before:
            if source not in seen and source in sources:
                return False
        seen.add(vertex)
    return True


def circles(targets: Mapping[Comparable, Iterable[Comparable]]) -> list[list[Comparable]]:
    """Return the strongly connected components that have a cycle, each sorted, in order of their
    first members.

    For example, ``{1: [2], 2: [1], 3: [3], 4: [1]}`` has the components ``[1, 2]`` and ``[3]``.
    Targets that are not keys are ignored.
    """
    if is_in_order(targets) or sources_first(targets) is not None:
        return []  # there is no cycle
    vertices = sorted(targets)
    index = {vertex: position for position, vertex in enumerate(vertices)}

    def successors(vertex: Comparable) -> list[int]:
        return [index[other] for other in targets[vertex] if other in index]

    def members(group: list[int]) -> list[Comparable]:
        return sorted(vertices[position] for position in group)

    edges = [successors(vertex) for vertex in vertices]
    found = [group for group in components(edges) if len(group) > 1 or group[0] in edges[group[0]]]
    return sorted(map(members, found))


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph over 0 … n-1 (Kosaraju's algorithm).

    Each component stands after all components that can be reached from it.
    """
    back = reversed_edges(enumerate(successors))
    seen: dict[int, None] = {}
    found: list[list[int]] = []
    for vertex in reversed(targets_first(range(len(successors)), successors.__getitem__)):
        before = len(seen)
        if vertex not in seen:
            reachable([vertex], back, seen)
            found.append(list(islice(reversed(seen), len(seen) - before)))
    return found[::-1]
