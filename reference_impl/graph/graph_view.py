"""Walk a MetaGraph: the main graph, then the functions, and the nodes that running a part of it may
execute.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import limits, schema
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_forms import NodeForm, NodeForms
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.signature_tensors import tensor_names

# Work (signatures times nodes) above which the reach of each signature is not computed.


class Body(NamedTuple):
    """The main graph (no function), or a function of the library."""

    function: Optional[str]
    nodes: Sequence[schema.NodeDef]


class Reached(NamedTuple):
    """The nodes of the main graph and the functions that a run may execute."""

    nodes: dict[str, None]
    functions: dict[str, None]


class GraphView:
    """A MetaGraph whose parts are read or computed on first use.

    `library` has its functions if they have been read.
    """

    def __init__(self, proto: schema.MetaGraphDef, library: Optional[FunctionIndex] = None):
        self.proto = proto
        self._forms = NodeForms()
        # The functions that nodes of a form refer to: without, and with, custom gradients.
        self._references: tuple[dict[NodeForm, tuple[str, ...]], ...] = ({}, {})
        if library is not None:
            self.library = library

    @functools.cached_property
    def main(self) -> Nodes:
        """The nodes of the main graph."""
        return Nodes(self.proto.graph_def.node)

    @functools.cached_property
    def library(self) -> FunctionIndex:
        return FunctionIndex(self.proto.graph_def.library)

    @functools.cached_property
    def calls(self) -> dict[str, list[str]]:
        """For each function, the functions that it refers to, including branches, bodies and
        gradients.
        """
        names = self.library.functions
        if not names:
            return {}
        forms = dict(zip(names, self.forms[1:]))
        # Nodes of one form refer to the same functions, so the first of them counts.
        return self.library.calls(lambda name: map(self._referred, dict.fromkeys(forms[name])))

    @functools.cached_property
    def bodies(self) -> list[Body]:
        """The main graph, then every function."""
        names = [None, *self.library.functions]
        return [Body(name, nodes.messages) for name, nodes in zip(names, self.indexes)]

    @functools.cached_property
    def indexes(self) -> list[Nodes]:
        """For each of the `bodies` its nodes with their names and inputs."""
        functions = self.library.functions.values()
        return [self.main, *[Nodes(function.node_def, True) for function in functions]]

    @functools.cached_property
    def function_nodes(self) -> dict[str, Nodes]:
        """For each function its nodes with their names and inputs."""
        return dict(zip(self.library.functions, self.indexes[1:]))

    @functools.cached_property
    def forms(self) -> list[list[NodeForm]]:
        """For each of the `bodies` the forms of its nodes."""
        return [self._forms.of_all(nodes) for nodes in self.indexes]

    def form(self, node: schema.NodeDef) -> NodeForm:
        """Return the form of a node of this MetaGraph."""
        return self._forms.of(node)

    def references(self, node: schema.NodeDef, gradients: bool = True) -> tuple[str, ...]:
        """Return the functions that a node refers to, as `FunctionIndex.references` does."""
        if not self.library.functions:
            return ()
        return self._referred(self._forms.of(node), gradients)

    def _referred(self, form: NodeForm, gradients: bool = True) -> tuple[str, ...]:
        found = self._references[gradients].get(form)
        if found is None:
            found = self._referred_by_form(form, gradients)
            self._references[gradients][form] = found
        return found

    def _referred_by_form(self, form: NodeForm, gradients: bool) -> tuple[str, ...]:
        if form.may_hold_functions or form.has_gradient or form.op in self.library.functions:
            return tuple(self.library.references(form.node, gradients=gradients))
        return ()

    def of_op(self, ops: Collection[str]) -> Iterator[tuple[Optional[str], schema.NodeDef]]:
        """Yield every node of one of these ops, with its function (None: the main graph)."""
        for body, nodes in zip(self.bodies, self.indexes):
            if not nodes.op_set.isdisjoint(ops):
                found = zip(nodes.ops, nodes.messages)
                yield from [(body.function, node) for op, node in found if op in ops]

    @functools.cached_property
    def _uses(self) -> dict[str, tuple[str, ...]]:
        """For each node of the main graph the functions that it refers to."""
        if not self.library.functions:
            return {}
        return dict(zip(self.main.names, map(self._referred, self.forms[0])))

    def reached(self, names: Iterable[str]) -> Reached:
        """Return the nodes and functions that running nodes of the main graph may execute."""
        nodes = reachable(names, self.main.waits)
        called: list[str] = []
        for node in nodes:
            called += self._uses.get(node, ())
        return Reached(nodes, reachable(called, self.calls))

    @functools.cached_property
    def by_signature(self) -> Optional[dict[str, Reached]]:
        """For each signature, everything that a call may execute; None if the search would take too
        long.
        """
        signatures = sorted(self.proto.signature_def.items())
        work = len(self.main.names) + sum(map(len, self.calls.values()))
        if work * len(signatures) > limits.SIGNATURE_REACH_STEPS:
            return None
        return {
            key: self.reached(map(input_source, tensor_names(signature.outputs)))
            for key, signature in signatures
        }

    @functools.cached_property
    def signatures_of_node(self) -> Optional[dict[str, list[str]]]:
        """For nodes of the main graph the signatures that may run them; None as `by_signature`."""
        found = self.by_signature
        return (
            None
            if found is None
            else reversed_edges((key, reached.nodes) for key, reached in found.items())
        )

    @functools.cached_property
    def signatures_of_function(self) -> Optional[dict[str, list[str]]]:
        """For functions the signatures that may run them; None as `by_signature`."""
        found = self.by_signature
        return (
            None
            if found is None
            else reversed_edges((key, reached.functions) for key, reached in found.items())
        )
