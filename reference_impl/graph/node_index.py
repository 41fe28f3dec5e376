"""A GraphDef with an index: nodes by name, inputs parsed, ancestors walked without recursion.

The v1 importer works on the protos alone (no TensorFlow): what it makes is what a migration writes, and what the
loader runs. See V1-01.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.edges import input_sources

CONTROL = -1


class Ref(NamedTuple):
    """One input of a node: output ``index`` of ``node``, or a control edge when the index is ``CONTROL``."""

    node: str
    index: int  # type: ignore[assignment]  # hides tuple.index

    @property
    def text(self) -> str:
        if self.index == CONTROL:
            return "^" + self.node
        return self.node if self.index == 0 else f"{self.node}:{self.index}"


def parse_ref(text: str) -> Ref:
    """``"n"``, ``"n:2"`` or ``"^n"`` as a :class:`Ref`. A tensor name of a SignatureDef has the same form."""
    if text.startswith("^"):
        return Ref(text[1:], CONTROL)
    name, colon, index = text.rpartition(":")
    if colon and index.isdigit():
        return Ref(name, int(index[:9]))
    return Ref(text, 0)


class Graph:
    """The nodes of one GraphDef by name.

    Args:
      graph_def: a GraphDef message; it is used, not copied.
      file: named in errors.

    Raises:
      DuplicateKeyError: two nodes share a name.
    """

    def __init__(self, graph_def: Any, file: str):
        self.file = file
        self.graph_def = graph_def
        self.nodes: dict[str, Any] = {}
        # Node -> tensors that must be there before it runs, unless they are fed: no edges, since none of them is needed for it.
        self.waits: dict[str, list[Ref]] = {}
        for node in graph_def.node:
            if node.name in self.nodes:
                raise errors.DuplicateKeyError("two nodes of this name", file=file, node=node.name)
            self.nodes[node.name] = node

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes.values())

    def node(self, name: str, wanted_by: str) -> Any:
        """The node called ``name``; MalformedError names ``wanted_by``, whose edge dangles, when there is none."""
        try:
            return self.nodes[name]
        except KeyError:
            raise errors.MalformedError(
                f"refers to node {name!r}, which is not in the graph", file=self.file, node=wanted_by
            ) from None

    def add(self, node: Any) -> None:
        """Append a copy of ``node``; its name must be free (see :meth:`free_name`)."""
        added = self.graph_def.node.add()
        added.CopyFrom(node)
        self.nodes[added.name] = added

    def free_name(self, wanted: str) -> str:
        """``wanted``, or ``wanted_1``, ``wanted_2``, … when taken."""
        name, count = wanted, 0
        while name in self.nodes:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def ancestors(self, roots: Iterable[Ref], stop: Iterable[Ref] = (), stop_nodes: Iterable[str] = ()) -> list[str]:
        """Names of all nodes needed for ``roots``, in graph order.

        Data and control edges are followed; an edge in ``stop`` (a fed tensor) or to a node in ``stop_nodes`` (a hoisted
        one) is not. Control edges from a fed Placeholder are not followed either, as in a Session.
        """
        fed, hoisted = set(stop), set(stop_nodes)
        fed_placeholders = {
            ref.node for ref in fed if self.nodes.get(ref.node) is not None and self.nodes[ref.node].op.startswith("Placeholder")
        }
        seen: set[str] = set()
        stack: list[tuple[Ref, str]] = [(ref, "") for ref in roots]
        while stack:
            ref, wanted_by = stack.pop()
            if ref in fed or ref.node in seen or ref.node in hoisted or (ref.index == CONTROL and ref.node in fed_placeholders):
                continue
            node = self.node(ref.node, wanted_by)
            seen.add(ref.node)
            stack.extend((parse_ref(text), ref.node) for text in node.input)
        return [name for name in self.nodes if name in seen]


class Nodes:
    """The nodes of a main graph, with what most walks ask of every one of them, read once: a message makes a new string for
    every question.

    Args:
      graph: a GraphDef.

    Attributes:
      messages, names, ops: the nodes in the order of the file, their names, their ops.
    """

    def __init__(self, graph: schema.GraphDef):
        self.messages: list[schema.NodeDef] = list(graph.node)
        self.names: list[str] = [node.name for node in self.messages]
        self.ops: list[str] = [node.op for node in self.messages]

    @functools.cached_property
    def by_name(self) -> dict[str, schema.NodeDef]:
        """Of two nodes of one name the last, as everywhere here."""
        return dict(zip(self.names, self.messages))

    @functools.cached_property
    def op_of(self) -> dict[str, str]:
        """Name -> op."""
        return dict(zip(self.names, self.ops))

    @functools.cached_property
    def sources(self) -> list[list[str]]:
        """For each node those that it waits for."""
        return input_sources(self.messages)

    @functools.cached_property
    def waits(self) -> dict[str, list[str]]:
        """The same by name."""
        return dict(zip(self.names, self.sources))
