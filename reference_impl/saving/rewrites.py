"""Options that look at the finished graph and its library: namespaces of ops that may be used, removal of debugging ops."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from reference_impl.errors import SaveError

_TO_NOTHING = ("Assert", "PrintV2")
_TO_IDENTITY = ("CheckNumerics", "Print")
_SHOWN = 8


def _nodes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """(name of the function, node)"""
    for node in graph_def.node:
        yield "the main graph", node
    for function in graph_def.library.function:
        for node in function.node_def:
            yield function.signature.name, node


def check_namespaces(graph_def: Any, allowed: Collection[str]) -> None:
    """Raises SaveError: there are ops of a namespace that is not among the ones allowed."""
    found: dict[str, list[str]] = {}
    for place, node in _nodes(graph_def):
        namespace, mark, _ = node.op.partition(">")
        if mark and namespace not in allowed:
            found.setdefault(namespace, []).append(f"{node.op} (node {node.name!r} of {place})")
    if found:
        places = [place for namespace in sorted(found) for place in found[namespace]]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        names = ", ".join(map(repr, sorted(found)))
        reason = (
            f"Attempted to save ops from namespaces that are not allowed: {', '.join(places[:_SHOWN])}{more}. Who loads the "
            f"model must have them. If they will, add {names} to the option `namespaces` (`namespace_whitelist`)."
        )
        raise SaveError(reason, node=min(found))


def strip_debug_ops(graph_def: Any) -> None:
    """Make ops that only check or print do nothing; what was to happen before them still happens before what follows."""
    arguments: dict[str, set[str]] = {}
    for function in graph_def.library.function:
        arguments[function.signature.name] = {argument.name for argument in function.signature.input_arg}
    for place, node in _nodes(graph_def):
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
