"""Find all vertices reachable from some vertices.

Graphs are untrusted: every walk is iterative and linear.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Optional, TypeVar, Union

Vertex = TypeVar("Vertex", bound=Hashable)
# The targets of a vertex: a map (a missing vertex has no targets), or a function of a vertex.
Edges = Union[Mapping[Vertex, Iterable[Vertex]], Callable[[Vertex], Optional[Iterable[Vertex]]]]


def reachable(
    starts: Iterable[Vertex], edges: Edges[Vertex], seen: Optional[dict[Vertex, None]] = None
) -> dict[Vertex, None]:
    """Return all vertices reachable from some vertices, including these, in the order of discovery.

    `seen` is the result of an earlier walk, which this walk continues. The vertices in it are not
    visited again.
    """
    following = edges if callable(edges) else edges.get
    found: dict[Vertex, None] = {} if seen is None else seen
    stack = [start for start in dict.fromkeys(starts) if start not in found]
    found.update(dict.fromkeys(stack))
    while stack:
        for target in following(stack.pop()) or ():
            if target not in found:
                found[target] = None
                stack.append(target)
    return found


def reversed_edges(edges: Iterable[tuple[Vertex, Iterable[Vertex]]]) -> dict[Vertex, list[Vertex]]:
    """Return the vertices that lead to each vertex: for functions with the functions that they
    call, the callers.
    """
    found: dict[Vertex, list[Vertex]] = {}
    for source, targets in edges:
        for target in targets:
            found.setdefault(target, []).append(source)
    return found
