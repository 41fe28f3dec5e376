"""Add nodes with names of their own to a graph or a function: the one place that makes NodeDefs.

The subclasses say where a node goes and how its tensors are named:

    FunctionBuilder    a new FunctionDef                            ``node:output:0``
    EditableFunction   a FunctionDef of TF 1.x control flow         ``node:output:0``
    node_index.Graph   the main graph of TF 1.x, to be rewritten    ``node``
    GraphBuilder       the main graph of a new MetaGraph            ``node``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional, Union

from reference_impl.format import schema
from reference_impl.graph.node_defs import set_call, set_constant, string_tensor
from reference_impl.graph.unique_names import UniqueNames


class NodeBuilder:
    """Adds nodes. A number is added to a name that is taken: ``read``, ``read_1``.

    Args:
      names: the names that are taken.
    """

    def __init__(self, names: UniqueNames):
        self._names = names

    def _new_node(self, name: str) -> schema.NodeDef:
        """Add an empty node with a name that is free."""
        raise NotImplementedError

    def _first_output(self, node: schema.NodeDef) -> str:
        """Return the text of the first tensor of a node, whose output argument is ``output``."""
        raise NotImplementedError

    def node(
        self, name: str, op: str, inputs: Iterable[str] = (), controls: Iterable[str] = ()
    ) -> schema.NodeDef:
        """Add a node, which takes tensors and waits for nodes; return its NodeDef, which has no
        attributes yet.
        """
        node = self._new_node(self._names.take(name))
        node.op = op
        node.input.extend(inputs)
        node.input.extend(f"^{control}" for control in controls)
        return node

    def constant(self, name: str, tensor: schema.TensorProto, controls: Iterable[str] = ()) -> str:
        """Add a Const that holds a TensorProto; return the text of its tensor."""
        node = self.node(name, "Const", (), controls)
        set_constant(node, tensor)
        return self._first_output(node)

    def strings(self, name: str, value: Union[bytes, Sequence[bytes]]) -> str:
        """Add a Const that holds one string or several; return the text of its tensor."""
        return self.constant(name, string_tensor(value))

    def identity(
        self, name: str, tensor: str, dtype: int, controls: Iterable[str] = ()
    ) -> schema.NodeDef:
        """Add an Identity of a tensor; return its NodeDef."""
        node = self.node(name, "Identity", [tensor], controls)
        node.attr["T"].type = dtype
        return node

    def call(
        self,
        name: Optional[str],
        function: str,
        signature: schema.OpDef,
        inputs: Iterable[str],
        is_stateful: Optional[bool] = None,
    ) -> schema.NodeDef:
        """Add a call of a function; return its NodeDef.

        By default it is named like the op, and the signature, an OpDef, decides about
        `is_stateful`.
        """
        stateful = signature.is_stateful if is_stateful is None else is_stateful
        op = "StatefulPartitionedCall" if stateful else "PartitionedCall"
        node = self.node(op if name is None else name, op, inputs)
        set_call(node, function, signature)
        return node
