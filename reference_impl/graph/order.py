"""Orders of directed graphs: strongly connected components. Graphs are untrusted: every walk is iterative and linear."""

from __future__ import annotations

from collections.abc import Sequence


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected components of a graph over 0 … n-1 (Tarjan's algorithm without recursion).

    Args:
      successors: for every vertex the vertices that its edges lead to.

    Returns:
      The components, each after all components that can be reached from it.
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
