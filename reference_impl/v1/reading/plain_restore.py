"""Find the part of a restore function that need not run: tensors of the checkpoint that are
assigned to variables unchanged.

A Saver's restore is ``RestoreV2 -> (Identity) -> Assign`` for each variable. Its tensors can be
read like those of any other checkpoint, in a third of the time (the benchmark "load: graph like
Inception V3" in docs/evidence/benchmarks.md). A TF 1.x graph may contain anything else, so all
other nodes run.

RFC: V1-08
"""

from __future__ import annotations

from typing import Optional

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.node_defs import constant_strings

# If the function has any other op, everything runs: the op may depend on the order, or have side
# effects.
_KNOWN = frozenset(
    {"Const", "Identity", "NoOp", "RestoreV2", "AssignVariableOp", "LookupTableImportV2"}
)


def plain_restores(function: schema.FunctionDef) -> dict[int, str]:
    """Return the argument of a variable's handle -> key, for variables that are assigned a whole
    tensor of the checkpoint.

    `function` is a restore op without reference variables. Its first argument is the prefix.
    """
    if any(node.op not in _KNOWN for node in function.node_def):
        return {}
    walk = _Walk(function)
    found: dict[int, Optional[str]] = {}
    for node in function.node_def:
        if node.op != "AssignVariableOp":
            continue
        inputs = data_inputs(node)
        if len(inputs) != 2:
            return {}  # a damaged node: TensorFlow refuses it when everything runs
        handle, value = map(walk.origin, inputs)
        argument = walk.arguments.get(handle[0], 0)
        found[argument] = None if argument in found or not argument else walk.key(node, *value)
    return {argument: key for argument, key in found.items() if key is not None}


class _Walk:
    def __init__(self, function: schema.FunctionDef):
        self.arguments = {
            argument.name: index for index, argument in enumerate(function.signature.input_arg)
        }
        self.nodes = {node.name: node for node in function.node_def}
        self.decoded: dict[str, list[bytes]] = {}

    def origin(self, text: str) -> tuple[str, int]:
        """Return the origin of a tensor (an argument, or a node that is not an Identity) and its
        output number.
        """
        for _ in range(len(self.nodes) + 1):
            edge = parse_input(text, in_function=True)
            node = self.nodes.get(edge.source)
            inputs = data_inputs(node) if node is not None and node.op == "Identity" else ()
            if len(inputs) != 1:
                break
            text = inputs[0]
        return edge.source, int(edge.port.rpartition(":")[2] or 0)

    def key(self, assign: schema.NodeDef, source: str, index: int) -> Optional[str]:
        """Return the key of a tensor if a RestoreV2 reads all of it from the checkpoint of the
        model.
        """
        node = self.nodes.get(source)
        if node is None or node.op != "RestoreV2":
            return None
        inputs = [self.origin(text)[0] for text in data_inputs(node)]
        if len(inputs) != 3 or self.arguments.get(inputs[0]) != 0:
            return None
        keys, slices = map(self.strings, inputs[1:])
        types = node.attr["dtypes"].list.type
        if not (index < len(keys) == len(slices) == len(types)):
            return None
        if slices[index] or types[index] != assign.attr["dtype"].type:
            return None
        return keys[index].decode("utf-8", "surrogateescape")

    def strings(self, name: str) -> list[bytes]:
        """Return the elements of a constant vector of strings; empty for another node."""
        if name not in self.decoded:
            self.decoded[name] = constant_strings(self.nodes.get(name)) or []
        return self.decoded[name]
