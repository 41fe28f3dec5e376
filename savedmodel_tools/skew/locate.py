"""Locate an op in a SavedModel: MetaGraph, function, node, and what leads there (signatures, the
object tree).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.graph.closure import reversed_edges
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import traces
from reference_impl.graph.references import bodies

Wanted = Callable[[schema.NodeDef], bool]


class Place(NamedTuple):
    """The place of a node.

    Attributes:
        tags: the tags of its MetaGraph.
      node: the NodeDef.
      function: the FunctionDef that holds it; "" in the main graph.
      chain: the functions that lead to it, from one named by a node of the main graph or by the
          object tree, down to ``function``.
      paths: places in the object tree whose calls may run it.
      signatures: signatures whose calls may run it; None where finding them would have taken too
        long.
      count: how many nodes of the model matched.
    """

    tags: tuple[str, ...]
    node: schema.NodeDef
    function: str
    chain: tuple[str, ...]
    paths: tuple[str, ...]
    signatures: Optional[tuple[str, ...]]
    count: int  # type: ignore[assignment]  # hides tuple.count

    @property
    def text(self) -> str:
        """``node 'a' of function 'g' (called through 'f'; object 'child.f'; signature
        'serving_default')``.
        """
        where = f"node '{self.node.name}' of " + (
            f"function '{self.function}'" if self.function else "the main graph"
        )
        by = []
        if len(self.chain) > 1:
            by.append("called through " + " -> ".join(f"'{name}'" for name in self.chain[:-1]))
        if self.paths:
            by.append("object " + ", ".join(f"'{path}'" for path in self.paths[:3]))
        if self.signatures:
            by.append("signature " + ", ".join(f"'{key}'" for key in self.signatures[:3]))
        elif self.signatures is not None and self.function:
            by.append("reached by no signature")
        more = f", and {self.count - 1} more" if self.count > 1 else ""
        return where + (f" ({'; '.join(by)})" if by else "") + more


def locate(model: Path, wanted: Wanted, *, node: str = "", function: str = "") -> Optional[Place]:
    """Return the node that an error most likely means.

    Args:
      model: a SavedModel.
      wanted: returns whether a NodeDef is a candidate.
      node: the node's name in the error: a loader may have prepended prefixes.
      function: the function's name in the error: a loader may have appended suffixes.

    Returns:
      The candidate whose name and function fit best; the first of the file when none fits; None
      without candidates.

    Raises:
      SavedModelError: what :func:`reference_impl.format.container.layout.read` raises.
    """
    best: Optional[tuple[int, schema.MetaGraphDef, str, schema.NodeDef]] = None
    count = 0
    for graph in layout.read(model).saved_model.meta_graphs:
        for holder, candidate in nodes(graph):
            if not wanted(candidate):
                continue
            count += 1
            score = _fit(node, candidate.name) * 2 + _fit_function(function, holder)
            if best is None or score > best[0]:
                best = score, graph, holder, candidate
    return None if best is None else Leads(best[1]).place(best[2], best[3], count)


def nodes(graph: schema.MetaGraphDef) -> Iterator[tuple[str, schema.NodeDef]]:
    """Yield (function, node) for every node of a MetaGraph; the function is "" in the main
    graph.
    """
    for function, items in bodies(graph.graph_def):
        name = "" if function is None else function.signature.name
        yield from ((name, item) for item in items)


def _fit(said: str, name: str) -> int:
    return 2 if said == name else 1 if said.endswith("/" + name) else 0


def _fit_function(said: str, name: str) -> int:
    return 2 if said == name else 1 if name and said.startswith(name) else 0


class Leads(GraphView):
    """The calls, signatures and paths in the object tree that lead to the nodes of a MetaGraph."""

    @functools.cached_property
    def _callers(self) -> dict[str, list[str]]:
        return reversed_edges(self.calls.items())

    @functools.cached_property
    def _objects(self) -> dict[str, list[str]]:
        """Map each concrete function to the paths in the object tree that hold it."""
        objects: Any = self.proto.object_graph_def.nodes
        paths = Paths(objects)
        found: dict[str, list[str]] = {}
        for number, node in enumerate(objects):
            for name in traces(node):
                found.setdefault(name, []).append(paths.label(number))
        return found

    @functools.cached_property
    def _outside(self) -> set[str]:
        """Return the functions that the main graph or the object tree names."""
        of_main = itertools.chain.from_iterable(map(self.references, self.main.messages))
        return {*self._objects, *of_main}

    def place(self, holder: str, node: schema.NodeDef, count: int = 1) -> Place:
        """Return the place of a node in the function ``holder``, or in the main graph ("")."""
        reached = self.signatures_of_function if holder else self.signatures_of_node
        chain, paths = self._way(holder) if holder else ((), ())
        signatures = None if reached is None else tuple(reached.get(holder or node.name, ()))
        return Place(layout.tags_of(self.proto), node, holder, chain, paths, signatures, count)

    def _way(self, holder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the shortest chain of functions from one named outside the library, and the
        objects that lead to the holder.
        """
        towards: dict[str, Optional[str]] = {holder: None}
        queue = [holder]
        for name in queue:  # grows during the walk: breadth first, each function once
            for caller in self._callers.get(name, ()):
                if caller not in towards:
                    towards[caller] = name
                    queue.append(caller)
        chain = [next((name for name in queue if name in self._outside), holder)]
        while (following := towards[chain[-1]]) is not None:
            chain.append(following)
        paths = itertools.chain.from_iterable(self._objects.get(name, ()) for name in queue)
        return tuple(chain), tuple(dict.fromkeys(paths))
