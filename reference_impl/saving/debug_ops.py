"""Turn ops that only check or print into ops that do nothing (the option `strip_debug_ops`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

_TO_NOTHING = ("Assert", "PrintV2")
_TO_IDENTITY = ("CheckNumerics", "Print")


def nodes_of(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of a graph and of its functions, each with the name of the function."""
    for node in graph_def.node:
        yield "the main graph", node
    for function in graph_def.library.function:
        for node in function.node_def:
            yield function.signature.name, node


def strip_debug_ops(graph_def: Any) -> None:
    """Make ops that only check or print do nothing; what was to happen before them still happens before what follows."""
    arguments: dict[str, set[str]] = {}
    for function in graph_def.library.function:
        arguments[function.signature.name] = {argument.name for argument in function.signature.input_arg}
    for place, node in nodes_of(graph_def):
        if node.op in _TO_NOTHING:
            _replace(node, "NoOp", 0, arguments.get(place, set()))
        elif node.op in _TO_IDENTITY:
            _replace(node, "Identity", 1, arguments.get(place, set()))


def _replace(node: Any, op: str, kept: int, arguments: Collection[str]) -> None:
    inputs = list(node.input)
    controls = [name if name.startswith("^") else "^" + name.partition(":")[0] for name in inputs[kept:]]
    controls = [name for name in dict.fromkeys(controls) if name[1:] not in arguments]
    node.op = op
    del node.input[:]
    node.input.extend([*inputs[:kept], *controls])
    for key in [key for key in node.attr if not key.startswith("_") and not (kept and key == "T")]:
        del node.attr[key]
