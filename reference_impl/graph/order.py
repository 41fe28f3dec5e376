"""Orders of directed graphs. Graphs are untrusted: every walk is iterative and linear."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Optional, TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)
Comparable = TypeVar("Comparable", int, str)


def targets_first(
    starts: Iterable[Vertex],
    edges: Callable[[Vertex], Iterable[Vertex]],
    on_cycle: Optional[Callable[[Vertex], Exception]] = None,
) -> list[Vertex]:
    """Return all vertices reachable from some vertices, each after the vertices that it leads to.

    Args:
      starts: the vertices to begin with, these included in the result.
      edges: the vertices that a vertex leads to; called once per vertex.
      on_cycle: makes the exception to raise for a vertex that leads to itself. Without it cycles are allowed, and the order
        inside a cycle is arbitrary.
    """
    complete: dict[Vertex, bool] = {}  # whether everything that a visited vertex leads to is in `order`
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

    A vertex follows as soon as its last source is placed, so that the result stays close to the order of the mapping.

    Sources that are not keys are ignored.
    """
    waiting = dict.fromkeys(sources, 0)
    targets: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in sources}
    for vertex, before in sources.items():
        for source in before:
            if source in targets:
                targets[source].append(vertex)
                waiting[vertex] += 1
    ready = [vertex for vertex, count in waiting.items() if count == 0]
    ready.reverse()
    order = []
    while ready:
        vertex = ready.pop()
        order.append(vertex)
        for target in reversed(targets[vertex]):
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return order if len(order) == len(sources) else None


def circles(targets: Mapping[Comparable, Iterable[Comparable]]) -> list[list[Comparable]]:
    """Return the groups of vertices that lead to themselves, each sorted, in order of their first members.

    Targets that are not keys are ignored.
    """
    vertices = sorted(targets)
    index = {vertex: position for position, vertex in enumerate(vertices)}
    edges = [[index[other] for other in targets[vertex] if other in index] for vertex in vertices]
    found = [group for group in components(edges) if len(group) > 1 or group[0] in edges[group[0]]]
    return sorted(sorted(vertices[position] for position in group) for group in found)


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph over 0 … n-1 (Tarjan's algorithm without recursion).

    Each component stands after all components that can be reached from it.
    """
    count = len(successors)
    index, low, on_path = [-1] * count, [0] * count, bytearray(count)
    path: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for start in range(count):
        if index[start] != -1:
            continue
        work = [(start, 0)]
        while work:
            vertex, edge = work.pop()
            if edge == 0:
                index[vertex] = low[vertex] = counter
                counter += 1
                path.append(vertex)
                on_path[vertex] = 1
            elif low[successors[vertex][edge - 1]] < low[vertex] and on_path[successors[vertex][edge - 1]]:
                low[vertex] = low[successors[vertex][edge - 1]]
            following = successors[vertex]
            while edge < len(following):
                target = following[edge]
                edge += 1
                if index[target] == -1:
                    work.append((vertex, edge))
                    work.append((target, 0))
                    break
                if on_path[target] and index[target] < low[vertex]:
                    low[vertex] = index[target]
            else:
                if low[vertex] == index[vertex]:
                    component: list[int] = []
                    while not component or component[-1] != vertex:
                        component.append(path.pop())
                        on_path[component[-1]] = 0
                    found.append(component)
    return found
