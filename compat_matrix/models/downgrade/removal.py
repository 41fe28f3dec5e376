"""Remove nodes without a result from a graph or function: nodes that waited for them wait for their inputs instead."""

from __future__ import annotations

from collections.abc import Collection, MutableSequence
from typing import Any

from reference_impl.format import schema
from reference_impl.graph.edges import parse_input


def remove(nodes: Any, gone: Collection[str]) -> None:
    """Take the nodes of these names, which give no tensors, out of a repeated field of NodeDefs."""
    waits = {node.name: [f"^{parse_input(text).source}" for text in node.input] for node in nodes if node.name in gone}
    present = {node.name for node in nodes} - set(gone)
    for node in nodes:
        if any(text[1:] in gone for text in node.input if text.startswith("^")):
            _replace_inputs(node, waits, present)
    kept = [node for node in nodes if node.name not in gone]
    copies = [schema.copy_of(node) for node in kept]
    del nodes[:]
    nodes.extend(copies)


def forget_outputs(function: schema.FunctionDef, gone: Collection[str]) -> None:
    """Take removed nodes out of what a function promises to run: they do nothing, so nobody asks for them by name."""
    names = sorted(name for name, node in function.control_ret.items() if node in gone)
    for name in names:
        del function.control_ret[name]
    kept = [name for name in function.signature.control_output if name not in names]
    del function.signature.control_output[:]
    function.signature.control_output.extend(kept)


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
    _assign(node.input, [*data, *controls])


def _assign(field: MutableSequence[str], values: list[str]) -> None:
    del field[:]
    field.extend(values)
