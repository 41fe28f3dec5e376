"""Find the nodes that tracing adds at the end of every function body.

`tf.function` returns each result through an Identity of its own, which waits, by way of one NoOp,
for all nodes with side effects. A body that is traced again would get a second such pair, and one
more with every generation of a model.

RFC: GOAL-13
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Optional

from reference_impl.format import schema
from reference_impl.graph.edges import parse_input


def return_nodes(
    function_def: schema.FunctionDef, is_stateful: Callable[[str], bool]
) -> dict[str, str]:
    """Return the Identity and NoOp nodes of a FunctionDef that a new trace of its other nodes makes
    again.

    Each node is mapped to the tensor to return instead of it, a NoOp to ``""``. `is_stateful` tells
    whether nodes of an op are ordered by tracing because they have side effects.
    """
    nodes = {node.name: node for node in function_def.node_def}
    used, returned = Counter[str](), Counter[str]()
    for node in function_def.node_def:
        used.update(parse_input(text, in_function=True).source for text in node.input)
    for text in function_def.ret.values():
        returned[parse_input(text, in_function=True).source] += 1
    used.update(function_def.control_ret.values())
    found: dict[str, str] = {}
    waits: Counter[str] = Counter()
    for node in function_def.node_def:
        if not _is_plain_identity(node) or returned[node.name] != 1 or used[node.name]:
            continue
        after = [text[1:] for text in node.input[1:]]
        if all(_only_orders(nodes.get(name), nodes, is_stateful) for name in after):
            found[node.name] = node.input[0]
            waits.update(name for name in after if nodes[name].op == "NoOp")
    found.update(
        {name: "" for name, count in waits.items() if used[name] == count and not returned[name]}
    )
    kept = {name for name in waits if name not in found}
    return {
        name: source
        for name, source in found.items()
        if not source or not _waits_for(nodes[name], kept)
    }


def _is_plain_identity(node: schema.NodeDef) -> bool:
    plain = node.op == "Identity" and not node.device and set(node.attr) <= {"T", "_output_shapes"}
    return plain and len(node.input) > 0 and not node.input[0].startswith("^")


def _only_orders(
    node: Optional[schema.NodeDef],
    nodes: Mapping[str, schema.NodeDef],
    is_stateful: Callable[[str], bool],
) -> bool:
    """Return whether a node has side effects or is a NoOp that waits only for such nodes: tracing
    orders these by itself.
    """
    if node is None:
        return False
    if node.op != "NoOp":
        return is_stateful(node.op)
    if node.device:
        return False
    sources = [nodes.get(text[1:]) for text in node.input]
    return all(source is not None and is_stateful(source.op) for source in sources)


def _waits_for(node: schema.NodeDef, names: set[str]) -> bool:
    return any(text[1:] in names for text in node.input if text.startswith("^"))
