"""Which operations of traced functions have which custom gradient, and which names of gradients
mean nothing here.

`tf.custom_gradient` registers a gradient under a generated name such as ``CustomGradient-130``. In
a graph that this process traced, the name means what is registered under it. In a graph that was
read from a file, it means that only if tf.saved_model.load gave the name, as it does to the
gradients that the file has. tf.saved_model.save keeps the first order, so files also name gradients
that they do not have. Such a number may be another gradient's by chance; it must not be looked up.

RFC: FMT-14
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import is_generated_gradient
from reference_impl.functions.names import LiveName


class Meaning(enum.Enum):
    """Meaning of a generated name at an operation: a gradient of this process, none, or perhaps
    one.
    """

    OURS, NOTHING, DOUBTFUL = enum.auto(), enum.auto(), enum.auto()


class Site(NamedTuple):
    """An operation with a custom gradient, and the function whose graph contains it."""

    operation: Any
    function: LiveName


class GradientSites:
    """The operations with custom gradients in the functions of the runtime that it has visited."""

    def __init__(self) -> None:
        self._of_function: dict[
            LiveName, dict[str, Site]
        ] = {}  # function -> op type -> the first site
        self._graphs: dict[LiveName, Any] = {}
        # Identity of a concrete function -> the function, the graphs that it knows.
        self._of_traced: dict[int, tuple[Any, list[tuple[LiveName, Any]]]] = {}
        # TensorFlow loaded a gradient with the name, and it may not be the one meant.
        self.doubtful: list[Site] = []

    def visit(self, function: object) -> None:
        """Look at a concrete function and at the functions that its graph knows."""
        for name, graph in self.graphs(function):
            if name not in self._of_function:
                self._graphs[name] = graph
                self._of_function[name] = self._in_graph(name, graph)

    def graphs(
        self, function: tf.types.experimental.ConcreteFunction
    ) -> list[tuple[LiveName, Any]]:
        """Return name and FuncGraph of a traced function and of all functions that its graph knew
        when this was first asked.
        """
        if id(function) not in self._of_traced:
            self._of_traced[id(function)] = function, list(function_graphs(function))
        return self._of_traced[id(function)][1]

    def _in_graph(self, name: LiveName, graph: tf.Graph) -> dict[str, Site]:
        """Return the sites of a graph by op type: the first of each whose gradient this process
        has.
        """
        sites = {}
        for op_type, operations in api.operations_with_gradients(graph).items():
            site = Site(operations[0], name)
            meaning = _meaning(operations, op_type)
            if meaning is Meaning.OURS:
                sites[op_type] = site
            elif meaning is Meaning.DOUBTFUL:
                self.doubtful.append(site)
        return sites

    def is_meant(self, function: LiveName, op_type: str) -> bool:
        """Return whether a node of a function means the gradient that this process has under the
        name `op_type`.
        """
        return not is_generated_gradient(op_type) or op_type in self._of_function.get(function, ())

    def find(self, op_type: str, functions: Iterable[LiveName]) -> Optional[Site]:
        """Return an operation with the gradient `op_type` in one of several functions, or None."""
        for function in functions:
            site = self._of_function.get(function, {}).get(op_type)
            if site is not None:
                return site
        return None

    def site(self, function: LiveName, node: str) -> Optional[Site]:
        """Return the operation of a node of a function, or None if there is no graph of the
        function.
        """
        try:
            return Site(self._graphs[function].get_operation_by_name(node), function)
        except KeyError:
            return None


def function_graphs(
    function: tf.types.experimental.ConcreteFunction,
) -> Iterator[tuple[LiveName, Any]]:
    """Yield name and FuncGraph of a traced function and of all functions that its graph knows, each
    name once.
    """
    seen: set[LiveName] = set()
    stack = [(LiveName(function.function_def.signature.name), function.graph)]
    while stack:
        name, graph = stack.pop()
        if name not in seen:
            seen.add(name)
            yield name, graph
            stack += [(LiveName(inner), of) for inner, of in api.nested_graphs(graph)]


def _meaning(operations: list[Any], op_type: str) -> Meaning:
    """Return what the name of a gradient means at the operations of one graph that have it."""
    operation = operations[0]
    if not is_generated_gradient(op_type) or not api.was_imported(operation):
        return Meaning.OURS
    original = api.copied_from(operation.graph)
    if original is not None:
        same = _same_operations(original, operations, op_type)
        return _meaning(same, op_type) if same else Meaning.NOTHING
    gradient = api.loaded_gradient(op_type)
    # tf.saved_model.load puts the gradients of a graph's operations into its library.
    # tf.custom_gradient makes a name for one operation. So a gradient that the graph knows through
    # a callee belongs to an operation of the callee, and the number here has met it by chance. Of
    # two operations in one graph, one has done so.
    if gradient is None or gradient not in api.own_functions(operation.graph):
        return Meaning.NOTHING
    return Meaning.OURS if len(operations) == 1 else Meaning.DOUBTFUL


def _same_operations(graph: tf.Graph, operations: list[Any], op_type: str) -> list[Any]:
    """Return the operations with the same names and the same gradient in another graph, or none if
    one is missing there.
    """
    found = []
    for operation in operations:
        try:
            same = graph.get_operation_by_name(operation.name)
        except KeyError:
            return []
        if same.type != operation.type or api.gradient_op_type(same) != op_type:
            return []
        found.append(same)
    return found
