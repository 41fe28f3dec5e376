"""Optimizer state in graphs of TF 1.x: what the ops that apply gradients take beside the variable they train."""

from __future__ import annotations

import re

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs, parse_input

_APPLY = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_READS = frozenset({"Identity", "ReadVariableOp"})


def optimizer_state(graph: schema.MetaGraphDef) -> set[str]:
    """Nodes of variables that training ops of the main graph read or change, and no training op trains: slots, powers of beta."""
    nodes = {node.name: node for node in graph.graph_def.node}
    trained: set[str] = set()
    state: set[str] = set()
    for node in nodes.values():
        if not _APPLY.match(node.op):
            continue
        for position, text in enumerate(data_inputs(node)):
            found = _variable(nodes, text)
            if found:
                (state if position else trained).add(found)
    return state - trained


def _variable(nodes: dict[str, schema.NodeDef], text: str) -> str:
    """The variable that a tensor is, or is read from; empty for anything else."""
    for _ in range(len(nodes)):
        node = nodes.get(parse_input(text).source)
        if node is None:
            return ""
        if node.op in _VARIABLES:
            return str(node.name)
        inputs = data_inputs(node)
        if node.op not in _READS or len(inputs) != 1:
            return ""
        text = inputs[0]
    return ""
