"""Object graphs are untrusted: every number of a node must be one, and what cannot contain itself must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reference_impl.errors import CycleError, MalformedError
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import references
from reference_impl.graph.object_roles import misfits
from reference_impl.graph.saved_variables import invalid


def check(graph: Any, file: str) -> None:
    """Check numbers of nodes, variables, and the roles of objects.

    Raises:
      MalformedError: a number is not that of a node, a variable cannot exist, an object cannot play its role.
    """
    if not graph.nodes:
        raise MalformedError("the object graph is empty", file=file, node="object_graph_def")
    for number, node in enumerate(graph.nodes):
        for other in references(node):
            if not 0 <= other < len(graph.nodes):
                reason = f"refers to node {other} of {len(graph.nodes)}"
                raise MalformedError(reason, file=file, node=f"object_graph_def.nodes[{number}]")
    paths: Any = None
    for number, node in enumerate(graph.nodes):
        wrong = invalid(node.variable) if node.WhichOneof("kind") == "variable" else None
        if wrong is not None:
            paths = paths or Paths(graph.nodes)
            raise MalformedError(f"the variable {node.variable.name!r}: {wrong}", file=file, node=paths.from_root(number))
    for number, reason in misfits(graph):
        raise MalformedError(reason, file=file, node=(paths or Paths(graph.nodes)).from_root(number))
    for name, function in graph.concrete_functions.items():
        for other in function.bound_inputs:
            if not 0 <= other < len(graph.nodes):
                reason = f"a function captures node {other} of {len(graph.nodes)}"
                raise MalformedError(reason, file=file, node=name)


def needed_first(numbers: list[int], needs: Callable[[int], Iterable[int]], file: str) -> list[int]:
    """Nodes in an order in which each comes after those of them that it is made of.

    Raises:
      CycleError: a node is made of itself: a tuple contains itself, or objects depend on each other.
    """
    waiting = set(numbers)
    order: list[int] = []
    while waiting:
        ready = [number for number in sorted(waiting) if not any(other in waiting for other in needs(number))]
        if not ready:
            reason = "a tuple contains itself, or objects are made of each other"
            raise CycleError(reason, file=file, node=f"object_graph_def.nodes[{min(waiting)}]")
        order += ready
        waiting.difference_update(ready)
    return order
