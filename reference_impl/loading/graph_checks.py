"""Check an object graph before objects are made: node numbers, variables, roles, cycles."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from reference_impl.errors import CycleError, MalformedError
from reference_impl.graph import order
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import containers, dangling, dangling_captures, misfits
from reference_impl.graph.saved_variables import invalid


def check(graph: Any, file: str) -> None:
    """Check node numbers, variables and the roles of objects, and that no container contains itself.

    Raises:
      MalformedError: a node number does not exist, a variable is impossible, or an object does not fit its role.
      CycleError: a list, dict or tuple contains itself.
    """
    if not graph.nodes:
        raise MalformedError("the object graph is empty", file=file, node="object_graph_def")
    for number, _, other in dangling(graph):
        raise MalformedError(f"refers to node {other} of {len(graph.nodes)}", file=file, node=f"object_graph_def.nodes[{number}]")
    variables = ((number, node.variable) for number, node in enumerate(graph.nodes) if node.HasField("variable"))
    impossible = ((number, f"the variable {item.name!r}: {why}") for number, item in variables if (why := invalid(item)))
    for number, reason in itertools.chain(impossible, misfits(graph)):
        raise MalformedError(reason, file=file, node=Paths(graph.nodes).from_root(number))
    needed_first(containers(graph), file)
    for name, other in dangling_captures(graph):
        raise MalformedError(f"a function captures node {other} of {len(graph.nodes)}", file=file, node=name)


def needed_first(needs: Mapping[int, Iterable[int]], file: str) -> list[int]:
    """Return the nodes, each after the nodes that it is made of. Those that are not keys are ignored.

    Raises:
      CycleError: a list, dict or tuple contains itself, or objects depend on each other.
    """
    found = order.sources_first({number: needs[number] for number in sorted(needs)})
    if found is None:
        first = order.circles(needs)[0][0]
        reason = "a list, dict or tuple contains itself, or objects are made of each other"
        raise CycleError(reason, file=file, node=f"object_graph_def.nodes[{first}]")
    return found
