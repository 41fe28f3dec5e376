"""Object graphs are untrusted: every number of a node must be one, and what cannot contain itself must not."""

from __future__ import annotations

from typing import Any

from reference_impl.format.errors import CycleError, MalformedError
from reference_impl.format.object_references import references


def check(graph: Any, file: str) -> None:
    """Every number of a node must be one. Raises MalformedError."""
    if not graph.nodes:
        raise MalformedError("the object graph is empty", file=file, node="object_graph_def")
    for number, node in enumerate(graph.nodes):
        for other in references(node):
            if not 0 <= other < len(graph.nodes):
                reason = f"refers to node {other} of {len(graph.nodes)}"
                raise MalformedError(reason, file=file, node=f"object_graph_def.nodes[{number}]")
    for name, function in graph.concrete_functions.items():
        for other in function.bound_inputs:
            if not 0 <= other < len(graph.nodes):
                reason = f"a function captures node {other} of {len(graph.nodes)}"
                raise MalformedError(reason, file=file, node=name)


def inner_first(tuples: list[int], graph: Any, file: str) -> list[int]:
    """Tuples so that each comes after those it contains. Raises CycleError: a tuple cannot contain itself."""
    waiting = set(tuples)
    order: list[int] = []
    while waiting:
        ready = [n for n in sorted(waiting) if not any(child.node_id in waiting for child in graph.nodes[n].children)]
        if not ready:
            raise CycleError("a tuple contains itself", file=file, node=f"object_graph_def.nodes[{min(waiting)}]")
        order += ready
        waiting.difference_update(ready)
    return order
