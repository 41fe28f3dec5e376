"""Remove nodes without a result from a graph or function: nodes that waited for them wait for their inputs instead."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Optional

from compat_matrix.models.edits.objects import keep_only
from reference_impl.format import schema
from reference_impl.graph.edges import parse_input
from reference_impl.graph.function_builder import remove_nodes


def remove(nodes: Any, gone: Collection[str], function: Optional[schema.FunctionDef]) -> None:
    """Take the nodes of these names, which give no tensors, out of a main graph, or of a function and what it promises to run."""
    waits = {node.name: [f"^{parse_input(text).source}" for text in node.input] for node in nodes if node.name in gone}
    present = {node.name for node in nodes} - set(gone)
    for node in nodes:
        if any(text[1:] in gone for text in node.input if text.startswith("^")):
            _replace_inputs(node, waits, present)
    if function is None:
        keep_only(nodes, lambda node: node.name not in gone)
    else:
        remove_nodes(function, gone)


def _replace_inputs(node: schema.NodeDef, waits: dict[str, list[str]], present: Collection[str]) -> None:
    """Drop control inputs from arguments of a function: they are not nodes and are available from the start."""
    data = [text for text in node.input if not text.startswith("^")]
    controls: dict[str, None] = {}
    pending = [text for text in reversed(node.input) if text.startswith("^")]
    seen = set()
    while pending:
        text = pending.pop()
        if text[1:] in present:
            controls[text] = None
        elif text[1:] in waits and text not in seen:  # a circle would be waited for forever
            seen.add(text)
            pending.extend(reversed(waits[text[1:]]))
    node.input[:] = [*data, *controls]
