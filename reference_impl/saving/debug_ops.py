"""Replace ops that only check or print by ops that do nothing (the option `strip_debug_ops`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from reference_impl.graph.edges import input_source
from reference_impl.graph.node_defs import add_controls, clear_op_attributes
from reference_impl.graph.references import bodies

_TO_NOTHING = ("Assert", "PrintV2")
_TO_IDENTITY = ("CheckNumerics", "Print")


def nodes_of(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of a graph and of its functions, each with the name of the function."""
    for function, nodes in bodies(graph_def):
        place = "the main graph" if function is None else function.signature.name
        yield from ((place, node) for node in nodes)


def strip_debug_ops(graph_def: Any) -> None:
    """Replace ops that only check or print by ops that do nothing but keep the order of the nodes before and after them."""
    arguments: dict[str, set[str]] = {}
    for function in graph_def.library.function:
        arguments[function.signature.name] = {argument.name for argument in function.signature.input_arg}
    for place, node in nodes_of(graph_def):
        if node.op in _TO_NOTHING:
            _replace(node, "NoOp", 0, arguments.get(place, set()))
        elif node.op in _TO_IDENTITY:
            _replace(node, "Identity", 1, arguments.get(place, set()))


def _replace(node: Any, op: str, kept: int, arguments: Collection[str]) -> None:
    sources = [input_source(text, in_function=True) for text in node.input[kept:]]
    node.op = op
    del node.input[kept:]
    add_controls(node, [name for name in sources if name not in arguments])
    clear_op_attributes(node, ("T",) if kept else ())
