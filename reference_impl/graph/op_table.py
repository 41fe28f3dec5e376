"""Describe the outputs of nodes.

A GraphDef says ``node:1``, a FunctionDef says ``node:values:0``; converting between them needs the
output arguments of every op. They come from the function library, the MetaGraph's
``stripped_op_list``, and last the registry of a running TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.graph.edges import Edge

# Stateful ops that only read a variable.
VARIABLE_READS = frozenset(
    {"ReadVariableOp", "VariableShape", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd"}
)
# Control flow of TF 1.x. Tracing expects Python contexts for these ops, which only the code that
# made them has.
_V1_FLOW = ("Switch", "Merge", "Enter", "Exit", "NextIteration")
V1_FLOW = frozenset([*_V1_FLOW, *(f"Ref{op}" for op in _V1_FLOW), "LoopCond"])


Output = tuple[str, int, int]  # argument name, position inside the argument, DataType


def has_v1_flow(function: schema.FunctionDef) -> bool:
    """Return whether a FunctionDef has control flow of TF 1.x."""
    return any(node.op in V1_FLOW for node in function.node_def)


class OpTable:
    """OpDefs by op name.

    `registered` returns the OpDef of an op in the running TensorFlow, or None for an unknown op.
    """

    def __init__(
        self, meta_graph: schema.MetaGraphDef, file: str, registered: Callable[[str], Optional[Any]]
    ):
        self.file = file
        self.registered = registered
        self._defs: dict[str, Any] = {
            op.name: op for op in meta_graph.meta_info_def.stripped_op_list.op
        }
        self.library = {
            function.signature.name: function for function in meta_graph.graph_def.library.function
        }
        self._defs.update((name, function.signature) for name, function in self.library.items())

    def get(self, op: str) -> Optional[Any]:
        """Return the OpDef of an op, or None if it is unknown."""
        if op not in self._defs:
            found = self.registered(op)
            if found is None:  # not kept: a library may register the op later
                return None
            self._defs[op] = found
        return self._defs[op]

    def outputs(self, node: schema.NodeDef) -> list[Output]:
        """Return (argument name, position inside the argument, DataType) for each output of a node.

        Raises:
          MissingKeyError: the node's op is unknown (a custom op whose OpDef the exporter dropped).
          MalformedError: an attr that decides the outputs is absent or has the wrong kind.
        """
        definition = self.get(node.op)
        if definition is None:
            raise errors.MissingKeyError(
                f"nothing describes op {node.op!r}; load the library that registers it",
                file=self.file,
                node=node.name,
            )
        out: list[Output] = []
        for argument in definition.output_arg:
            types = self._types(node, argument)
            out.extend((argument.name, position, kind) for position, kind in enumerate(types))
        return out

    def output(self, node: schema.NodeDef, edge: Edge) -> Optional[Output]:
        """Return the output of a node that an edge names, or None if it has no such output."""
        return output_at(self.outputs(node), edge)

    def _types(self, node: schema.NodeDef, argument: schema.OpDef.ArgDef) -> list[int]:
        if argument.type_list_attr:
            return list(self._attr(node, argument.type_list_attr).list.type)
        kind = argument.type or self._attr(node, argument.type_attr).type
        if not argument.number_attr:
            return [kind]
        count = self._attr(node, argument.number_attr).i
        if not 0 <= count <= limits.TENSORS_OF_NODE:
            raise errors.LimitError(
                f"attr {argument.number_attr!r} asks for {count} outputs",
                file=self.file,
                node=node.name,
                limit="TENSORS_OF_NODE",
            )
        return [kind] * count

    def _attr(self, node: schema.NodeDef, name: str) -> Any:
        if name in node.attr:
            return node.attr[name]
        # stripped_default_attrs: an absent attr has the default of the OpDef.
        definition = self.get(node.op)
        for attr in definition.attr if definition is not None else ():
            if attr.name == name and attr.HasField("default_value"):
                return attr.default_value
        raise no_attribute(node.op, name, self.file, node.name)

    def is_stateful(self, node: schema.NodeDef) -> bool:
        """Return whether the op of a node is stateful. An unknown op counts as stateful."""
        definition = self.get(node.op)
        return definition is None or definition.is_stateful


def output_at(outputs: Sequence[Output], edge: Edge) -> Optional[Output]:
    """Return the entry of a node's outputs that an edge names, or None."""
    number = edge.number
    return outputs[number] if number is not None and number < len(outputs) else None


def no_attribute(
    op: str, name: str, file: Optional[str] = None, node: Optional[str] = None
) -> errors.MalformedError:
    """Return the error for a node of `op` that lacks the attribute `name`, which has no default."""
    return errors.MalformedError(f"the {op} node has no attribute {name!r}", file=file, node=node)
