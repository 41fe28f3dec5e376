"""Select the part of an object graph that ``LoadOptions(only=...)`` names, with everything that the
part needs.

A path names an object as Python would: ``encoder``, ``encoder.call``, ``layers.0``,
``weights.kernel``, ``signatures``, ``signatures.serving_default``. Steps are the names of children,
separated by dots; elements of lists and tuples are named by their index. Dots inside a name are not
escaped.

A part includes everything that a named object needs: its children, the captures of its functions
and of their gradients, the functions that create and fill its tables, the slots of its optimizer.
Objects on the path from the root, and on the path to a captured variable, are loaded without their
other children, so that the part can be saved again. A list that is loaded in part has
None for its other elements.

RFC: DR-03
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Union

from reference_impl.errors import UnknownPathError, nearest
from reference_impl.format import schema
from reference_impl.format.names import LIST, SIGNATURES_CHILD, TUPLE
from reference_impl.graph.closure import reachable
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import references, traces
from reference_impl.graph.references import FunctionIndex

_LISTED = 10_000  # paths that are compared for a suggestion
_STATE = ("variable", "resource", "asset")
_CONTAINERS = (LIST, TUPLE)


class Selection:
    """The numbers of the nodes and the names of the functions that are to be loaded.

    The nodes `chosen` are loaded with everything they need, nodes `on_the_way` only as parents of
    others. The numbers in `graph` have been checked.
    """

    def __init__(
        self,
        graph: schema.SavedObjectGraph,
        library: FunctionIndex,
        chosen: Iterable[int],
        on_the_way: Collection[int] = (),
    ):
        self._graph = graph
        self._library = library
        self.functions: dict[str, None] = {}
        self.nodes = self._closure(chosen, on_the_way)

    @classmethod
    def of_paths(
        cls,
        graph: schema.SavedObjectGraph,
        only: Union[str, Collection[str]],
        library: FunctionIndex,
        file: str = "",
    ) -> Selection:
        """Return the part that paths name, with the objects on the way to it.

        Raises UnknownPathError.
        """
        found = [
            _resolve(graph, path, file) for path in ([only] if isinstance(only, str) else only)
        ]
        on_the_way: set[int] = set()
        for steps in found:
            on_the_way.update(steps[:-1])
        chosen = {steps[-1] for steps in found if steps}
        selection = cls(graph, library, chosen, on_the_way - chosen)
        selection.nodes |= {0} | on_the_way | selection._leading_to(selection.nodes)
        return selection

    def pruned(self) -> Any:
        """Return the graph with the same node numbers, in which all other nodes are empty and
        nothing refers to them.
        """
        graph = schema.SavedObjectGraph()
        for number, node in enumerate(self._graph.nodes):
            copy = graph.nodes.add()
            if number in self.nodes:
                copy.CopyFrom(node)
                for field, numbers in (
                    (copy.children, "node_id"),
                    (copy.slot_variables, "slot_variable_node_id"),
                ):
                    kept: list[Any] = [
                        item for item in field if getattr(item, numbers) in self.nodes
                    ]
                    del field[:]
                    field.extend(kept)
                for name in [
                    name
                    for name, pair in copy.saveable_objects.items()
                    if pair.save_function not in self.nodes
                ]:
                    del copy.saveable_objects[name]
        for name in self.functions.keys() & set(self._graph.concrete_functions):
            graph.concrete_functions[name].CopyFrom(self._graph.concrete_functions[name])
        return graph

    def _closure(self, chosen: Iterable[int], partial: Collection[int]) -> frozenset[int]:
        """Return the nodes and everything they need.

        A reference back to a `partial` node does not add the rest of that node.
        """

        def needs(number: int) -> Iterator[int]:
            node = self._graph.nodes[number]
            for other in itertools.chain(references(node), self._captures(traces(node))):
                if other not in partial:
                    yield other

        return frozenset(reachable(set(chosen).difference(partial), needs))

    def _captures(self, names: Iterable[str]) -> Iterator[int]:
        """Yield the captures of functions, of the functions that they call, and of their custom
        gradients.
        """
        known = len(self.functions)
        reachable(names, self._refers, self.functions)
        for name in itertools.islice(self.functions, known, None):
            if name in self._graph.concrete_functions:
                yield from self._graph.concrete_functions[name].bound_inputs

    def _refers(self, name: str) -> Iterator[str]:
        function = self._library.functions.get(name)
        for node in function.node_def if function is not None else ():
            yield from self._library.references(node)

    def _leading_to(self, wanted: Collection[int]) -> set[int]:
        """Return the objects on a short path from the root to each piece of state, avoiding lists
        (which would get gaps).
        """
        parents: dict[int, int] = {0: -1}
        queue, containers = deque([0]), deque[int]()
        while queue or containers:
            number = queue.popleft() if queue else containers.popleft()
            for child in self._graph.nodes[number].children:
                node = self._graph.nodes[child.node_id]
                if child.node_id not in parents:
                    parents[child.node_id] = number
                    if node.WhichOneof("kind") == "user_object":
                        (
                            containers if node.user_object.identifier in _CONTAINERS else queue
                        ).append(child.node_id)
        leading: set[int] = set()
        for number in wanted:
            if self._graph.nodes[number].WhichOneof("kind") in _STATE:
                number = parents.get(number, -1)
                while number >= 0 and number not in leading:
                    leading.add(number)
                    number = parents[number]
        return leading


def _resolve(graph: schema.SavedObjectGraph, path: str, file: str) -> list[int]:
    """Return the nodes along a path, the root first.

    If the path is ambiguous, the reading with the longest names is taken.
    """
    if path == SIGNATURES_CHILD and all(
        child.local_name != path for child in graph.nodes[0].children
    ):
        return []  # a model may have none; a load of everything then has an empty map
    stack = [([0], path)]
    tried: set[tuple[int, str]] = set()
    while stack:
        steps, rest = stack.pop()
        if (steps[-1], rest) in tried:
            continue
        tried.add((steps[-1], rest))
        for child in sorted(
            graph.nodes[steps[-1]].children, key=lambda child: len(child.local_name)
        ):
            if rest == child.local_name:
                return [*steps, child.node_id]
            if rest.startswith(child.local_name + "."):
                stack.append(([*steps, child.node_id], rest[len(child.local_name) + 1 :]))
    near = nearest(path, _paths(graph), cutoff=0.3)
    names = sorted(child.local_name for child in graph.nodes[0].children)
    known = (
        f"the nearest are {', '.join(near)}"
        if near
        else f"the root has {', '.join(names) or 'nothing'}"
    )
    raise UnknownPathError(
        f"only={path!r}: no such object is reachable from the root; {known}", file=file, node=path
    )


def _paths(graph: schema.SavedObjectGraph) -> list[str]:
    """Return the shortest path of every object below the root, up to a limit."""
    paths = Paths(graph.nodes)
    return [paths.text(number) or "" for number in paths.order[1:_LISTED]]
