"""The nodes of a main graph or a function, by name.

`Nodes` reads a body unchanged; of two nodes with one name the last counts. `Graph` is a graph to
rewrite, in which names are unique: a TF 1.x import works on it before it extracts functions.

RFC: V1-01
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import Edge, parse_input, sources_of, without_controls
from reference_impl.graph.node_builder import NodeBuilder
from reference_impl.graph.unique_names import UniqueNames


class Nodes:
    """The nodes of a main graph or a function with their names, ops and inputs, each read once: a
    message makes new strings each time.
    """

    def __init__(self, messages: Iterable[schema.NodeDef], in_function: bool = False):
        self.messages: list[schema.NodeDef] = list(messages)
        self._in_function = in_function
        self._data_inputs: dict[str, list[str]] = {}

    @functools.cached_property
    def names(self) -> list[str]:
        return [node.name for node in self.messages]

    @functools.cached_property
    def ops(self) -> list[str]:
        return [node.op for node in self.messages]

    @functools.cached_property
    def op_set(self) -> frozenset[str]:
        """The ops that nodes have, in no order."""
        return frozenset(self.ops)

    @functools.cached_property
    def inputs(self) -> list[list[str]]:
        """For each node its inputs."""
        return [list(node.input) for node in self.messages]

    @functools.cached_property
    def by_name(self) -> dict[str, schema.NodeDef]:
        """Name -> node. Of two nodes of one name the last."""
        return dict(zip(self.names, self.messages))

    @functools.cached_property
    def op_of(self) -> dict[str, str]:
        """Name -> op."""
        return dict(zip(self.names, self.ops))

    def data_inputs(self, name: str) -> list[str]:
        """Return the inputs of a node that carry tensors."""
        found = self._data_inputs.get(name)
        if found is None:
            found = self._data_inputs[name] = without_controls(self.by_name[name].input)
        return found

    @functools.cached_property
    def sources(self) -> list[list[str]]:
        """For each node the nodes and arguments that it waits for."""
        return [sources_of(inputs, self._in_function) for inputs in self.inputs]

    @functools.cached_property
    def waits(self) -> dict[str, list[str]]:
        """Name -> the nodes that it waits for."""
        return dict(zip(self.names, self.sources))


class Graph(NodeBuilder):
    """A main graph to rewrite, with its nodes by name.

    The GraphDef is used, not copied.

    `damaged` are nodes that break the rules of their ops, with their errors: an iteration leaves
    them out.

    Raises DuplicateKeyError, which names `file`, if two nodes share a name.
    """

    def __init__(
        self,
        graph_def: schema.GraphDef,
        file: str,
        damaged: Mapping[str, errors.SavedModelError] = MappingProxyType({}),
    ):
        self.file = file
        self._damaged = damaged
        self.graph_def = graph_def
        self.nodes: dict[str, Any] = {}
        self._places: dict[str, int] = {}  # node -> its place among the nodes
        # No node ever goes. A save op wants one name for the read of each variable.
        super().__init__(UniqueNames())
        # Node -> tensors that must be computed before it runs, unless they are fed. They are not
        # edges, since the node does not need them.
        self.waits: dict[str, list[Edge]] = {}
        for node in graph_def.node:
            if node.name in self.nodes:
                reason = "two nodes of this name"
                raise errors.DuplicateKeyError(reason, file=file, node=node.name, rule="SM-META-6")
            self._list(node)

    def _list(self, node: schema.NodeDef) -> None:
        self._places[node.name] = len(self.nodes)
        self.nodes[node.name] = node
        self._names.reserve([node.name])

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return names of nodes in the order of the graph."""
        return sorted(names, key=self._places.__getitem__)

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    def __iter__(self) -> Iterator[Any]:
        if not self._damaged:
            return iter(self.nodes.values())
        return iter([node for name, node in self.nodes.items() if name not in self._damaged])

    def needed(self, name: str, wanted_by: str) -> Any:
        """Return a node that is needed.

        Raises:
          MalformedError: there is no such node; the error names ``wanted_by``, the node with the
            edge.
          SavedModelError: it is damaged.
        """
        if name in self._damaged:
            raise self._damaged[name]
        try:
            return self.nodes[name]
        except KeyError:
            raise errors.MalformedError(
                f"refers to node {name!r}, which is not in the graph",
                file=self.file,
                node=wanted_by,
            ) from None

    def _new_node(self, name: str) -> schema.NodeDef:
        added = self.graph_def.node.add(name=name)
        self._list(added)
        return added

    def _first_output(self, node: schema.NodeDef) -> str:
        return str(node.name)

    def copy_node(self, node: schema.NodeDef) -> None:
        """Add a copy of a NodeDef whose name is free."""
        self._new_node(node.name).CopyFrom(node)

    def ancestors(
        self, roots: Iterable[Edge], stop: Iterable[Edge] = (), stop_nodes: Iterable[str] = ()
    ) -> list[str]:
        """Return the names of all nodes that are needed for some tensors, in graph order.

        Data and control edges are followed. Control edges from a fed Placeholder are not, as in a
        Session. Nodes that are needed only by the tensors in `stop` (which are fed) or by
        `stop_nodes` (which are outside the function) are left out. Raises as `node` does.
        """
        fed, outside = set(stop), set(stop_nodes)
        fed_nodes = {ref.source for ref in fed}
        placeholders = {
            name
            for name in fed_nodes
            if name in self.nodes and self.nodes[name].op.startswith("Placeholder")
        }

        def needed(refs: Iterable[Edge], wanted_by: str) -> Iterator[str]:
            for ref in refs:
                after_feed = ref.is_control and ref.source in placeholders
                if ref not in fed and ref.source not in outside and not after_feed:
                    yield self.needed(ref.source, wanted_by).name

        found = reachable(
            needed(roots, ""), lambda name: needed(map(parse_input, self.nodes[name].input), name)
        )
        return self.in_order(found)
