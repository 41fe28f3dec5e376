"""Build the main graph of a new MetaGraph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

from reference_impl.format import schema
from reference_impl.graph.node_builder import NodeBuilder
from reference_impl.graph.unique_names import UniqueNames


class GraphBuilder(NodeBuilder):
    """Adds nodes to a new GraphDef, `graph_def`.

    Names differ by more than case, since some tools write names that differ only in case to the
    same file.
    """

    def __init__(self) -> None:
        super().__init__(UniqueNames(key=str.lower))
        self.graph_def = schema.GraphDef()

    def _new_node(self, name: str) -> schema.NodeDef:
        return self.graph_def.node.add(name=name)

    def _first_output(self, node: schema.NodeDef) -> str:
        return str(node.name)

    def node(
        self, name: str, op: str, inputs: Iterable[str] = (), controls: Iterable[str] = ()
    ) -> schema.NodeDef:
        """Add a node as every builder does, with a name that is valid in C++ too.

        TensorFlow allows a backslash in Python but not in C++.
        """
        valid = re.sub(r"[^A-Za-z0-9_./-]", "_", name)
        valid = valid if re.match(r"[A-Za-z0-9.]", valid) else "n" + valid
        return super().node(valid, op, inputs, controls)

    def add(
        self,
        name: str,
        op: str,
        inputs: Iterable[str] = (),
        dtype: Optional[int] = None,
        shape: Optional[schema.TensorShapeProto] = None,
    ) -> schema.NodeDef:
        """Add a node with a free name like `name` and, if they are given, with the attributes
        ``dtype`` and ``shape``.
        """
        node = self.node(name, op, inputs)
        if dtype is not None:
            node.attr["dtype"].type = dtype
        if shape is not None:
            node.attr["shape"].shape.CopyFrom(shape)
        return node

    def add_string(self, name: str, op: str) -> schema.NodeDef:
        """Add a node with one string."""
        return self.add(name, op, dtype=schema.DT_STRING, shape=schema.TensorShapeProto())
