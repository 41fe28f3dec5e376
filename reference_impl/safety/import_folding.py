"""Find the nodes that TensorFlow computes while it imports a graph.

Shape inference asks for the values of some inputs, as the second one of Reshape. TensorFlow
computes such a value at once if it follows from constants by stateless ops. Loaders import the main
graph or all functions, also those that nobody calls, and shape inference enters called functions
with the values of their arguments. So an argument counts as a constant here.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.graph.closure import reversed_edges
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.graph_view import Body, GraphView
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.references import function_attributes
from reference_impl.safety.folding_tables import (
    OF_SHAPES,
    asked_inputs,
    asked_of,
    output_counts,
    stateless_ops,
)
from reference_impl.safety.path_origins import PLACEHOLDERS, first_argument

# Stateless ops that are not computed: they belong to control flow, or a value may be fed there.
_CONTROL_FLOW = frozenset(
    {"Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration"}
)
_NEVER = _CONTROL_FLOW | PLACEHOLDERS | {"PlaceholderWithDefault"}
# Ops of whose inputs some are computed where others are not known.
_IN_PARTS = frozenset({"Pack", "Concat", "ConcatV2", "StridedSlice", "Cast", "Slice", "Identity"})


class ImportedBody:
    """The main graph or a function, and what importing it computes: a node comes after its
    inputs.
    """

    def __init__(self, body: Body, index: Nodes, view: GraphView):
        self.name, self._view, library = body.function, view, view.library
        self.nodes, self._inputs = index.by_name, index.data_inputs
        self._asking = _of_ops(index, asked_inputs())
        # An attribute says how many outputs they have.
        self.counted = _of_ops(index, output_counts())
        function = None if body.function is None else library.functions[body.function]
        names = [] if function is None else [item.name for item in function.signature.input_arg]
        self.arguments = {name: number for number, name in enumerate(names)}
        self.asked: set[int] = set()  # arguments whose values are asked for
        self._foldable: dict[str, bool] = {}

    def computed(self, asked: Mapping[str, Collection[int]]) -> list[schema.NodeDef]:
        """Return the nodes that are computed, and note which arguments are asked for.

        `asked` are the arguments of functions that are asked for.
        """
        found: dict[str, bool] = {}  # node -> whether it is computed as a whole
        pending: list[str] = []
        for node in self._asking:
            pending += map(self._source, asked_of(node))
        for node in self.nodes.values() if asked else ():
            pending += map(self._source, self._asked_by_functions(node, asked))
        while pending:
            name = pending.pop()
            if name in self.arguments:
                self.asked.add(self.arguments[name])
            if name in found or name not in self.nodes:
                continue
            node = self.nodes[name]
            found[name] = self.is_foldable(name)
            if node.op not in OF_SHAPES and (found[name] or node.op in _IN_PARTS):
                pending += [self._source(text) for text in self._inputs(name)]
        return [self.nodes[name] for name in self._foldable if found.get(name)]

    def _asked_by_functions(
        self, node: schema.NodeDef, asked: Mapping[str, Collection[int]]
    ) -> Iterator[str]:
        """Yield the inputs of a node that the functions ask for which it calls."""
        for name in self._view.references(node, gradients=False):
            given = data_inputs(node)[first_argument(node.op) or 0 :]
            yield from [given[number] for number in asked.get(name, ()) if number < len(given)]

    def _source(self, text: str) -> str:
        return input_source(text, self.name is not None)

    def is_foldable(self, name: str) -> bool:
        """Return whether a node follows from constants and arguments by stateless ops.

        Each node is visited once, after its inputs; a node on a circle does not follow from
        constants.
        """
        stack = [name]
        opened: set[str] = set()
        while stack:
            current = stack[-1]
            if current in self._foldable or current not in self.nodes:
                stack.pop()
                continue
            node = self.nodes[current]
            follows = _may_fold(node) and node.op not in OF_SHAPES
            sources = [self._source(text) for text in self._inputs(current)] if follows else []
            if current in opened or not sources:
                self._foldable[current] = _may_fold(node) and all(map(self._is_known, sources))
                stack.pop()
            opened.add(current)
            stack += [
                source
                for source in sources
                if source not in self._foldable and source not in opened
            ]
        return self._foldable.get(name, False)

    def _is_known(self, name: str) -> bool:
        return name in self.arguments or self._foldable.get(name, False)


def _of_ops(index: Nodes, ops: Container[str]) -> list[schema.NodeDef]:
    """Return the nodes of some ops, of two nodes of one name the last."""
    if not any(op in ops for op in index.op_set):
        return []
    found = zip(index.op_of.values(), index.by_name.values())
    return [node for op, node in found if op in ops]


def _may_fold(node: schema.NodeDef) -> bool:
    return node.op == "Const" or (
        node.op in stateless_ops() and node.op not in _NEVER and not function_attributes(node.attr)
    )


def imported(view: GraphView) -> Iterator[tuple[ImportedBody, list[schema.NodeDef]]]:
    """Yield each body with the nodes that importing it computes: the functions, then the main
    graph.
    """
    bodies = {
        body.function: ImportedBody(body, index, view)
        for body, index in zip(view.bodies, view.indexes)
    }
    callers = reversed_edges(view.calls.items())
    asked: dict[str, Collection[int]] = {}
    found: dict[Optional[str], list[schema.NodeDef]] = {}
    pending = dict.fromkeys(view.calls)
    steps = 0
    while pending:
        name, _ = pending.popitem()
        body = bodies[name]
        found[name] = body.computed(
            {called: asked[called] for called in view.calls[name] if called in asked}
        )
        steps += len(body.nodes)
        if steps > limits.FOLDING_STEPS:
            asked = {name: range(len(bodies[name].arguments)) for name in view.calls}
            found.update((name, bodies[name].computed(asked)) for name in pending)
            break
        if len(body.asked) > len(asked.get(name, ())):
            asked[name] = frozenset(body.asked)
            pending.update(dict.fromkeys(callers.get(name, ())))
    found[None] = bodies[None].computed(asked)
    yield from [(bodies[name], nodes) for name, nodes in found.items()]
