"""Inline the bodies of functions that make shared handles into the graph that calls them.

A graph may make a table in a function: TF 1.15 does so for each table of a TF 2 model that it
loads. A session finds such a table by its shared name. A function that is exported again must get
the handle as a capture. So the node that makes it must be in the main graph, where
:class:`reference_impl.v1.reading.program.Program` looks for state.

All other calls are kept: calls with their own gradient or dtypes, recursive calls, and handles
made in the branch or body of an If or While. `reference_impl.saving.checks.hidden_state` refuses
state that would be lost with them.

RFC: V1-17
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Optional

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.names import CALLS, CUSTOM_GRADIENT
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.edges import Edge, input_source, parse_input
from reference_impl.graph.node_attributes import text_of
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.unique_names import UniqueNames

MakesHandle = Callable[[Any], bool]


def inline_makers(
    graph: Graph, ops: OpTable, makes_handle: MakesHandle, damaged: Collection[str] = ()
) -> frozenset[str]:
    """Replace, in place, every call through which a shared handle is made by the nodes of the
    function.

    The node of the call is kept as an Identity, IdentityN or NoOp, so its outputs and control edges
    keep their meaning. Calls of `damaged` functions, and calls that are damaged themselves, are
    left.

    Returns:
      The names of the nodes that came out of functions.
    """
    library = FunctionIndex(graph.graph_def.library)
    makers = _functions_that_make(library, makes_handle) - frozenset(damaged)
    added: set[str] = set()
    names = UniqueNames(graph.nodes if makers else ())
    work = [(node.name, frozenset[str]()) for node in graph] if makers else []
    while work:
        name, callers = work.pop()
        called = _called(library, graph.nodes[name], makers)
        if called is None or called in callers or len(added) > limits.INLINED_NODES:
            continue
        try:
            inner = _Inlined(
                graph, ops, names, graph.nodes[name], library.functions[called], makes_handle
            ).apply()
        except errors.SavedModelError:  # an inconsistent function: its caller gets the error
            continue
        added.update(inner)
        work.extend((node, callers | {called}) for node in inner)
    return frozenset(added)


def _functions_that_make(library: FunctionIndex, makes_handle: MakesHandle) -> frozenset[str]:
    """Return the functions that make a shared handle themselves or through calls."""
    nodes = {name: function.node_def for name, function in library.functions.items()}
    found = [name for name, inside in nodes.items() if any(map(makes_handle, inside))]
    callers = reversed_edges(
        (name, filter(None, map(library.called, inside))) for name, inside in nodes.items()
    )
    return frozenset(reachable(found, callers))


def _called(library: FunctionIndex, node: schema.NodeDef, makers: frozenset[str]) -> Optional[str]:
    if node.op not in CALLS and node.op not in library.functions:
        return None
    called = library.called(node)
    if (
        called not in makers or library.functions[called].signature.attr
    ):  # the call decides its dtypes
        return None
    gradient = text_of(node.attr, CUSTOM_GRADIENT)
    return None if gradient in library.gradients or called in library.gradient_of else called


class _Inlined:
    """One call. The graph is changed only after all parts of the call proved to be valid."""

    def __init__(
        self,
        graph: Graph,
        ops: OpTable,
        names: UniqueNames,
        call: schema.NodeDef,
        function: schema.FunctionDef,
        makes_handle: MakesHandle,
    ):
        self.graph, self.ops, self.call, self.function, self.makes_handle = (
            graph,
            ops,
            call,
            function,
            makes_handle,
        )
        self.arguments = {
            item.name: names.take(f"{call.name}/{item.name}")
            for item in function.signature.input_arg
        }
        self.nodes = {
            node.name: names.take(f"{call.name}/{node.name}") for node in function.node_def
        }
        self.ready = names.take(f"{call.name}/inputs")
        self.bodies = {node.name: node for node in function.node_def}

    def apply(self) -> list[str]:
        """Add the nodes to the graph; return their names."""
        inputs = [parse_input(text) for text in self.call.input]
        data = [ref for ref in inputs if not ref.is_control]
        wanted = self.function.signature.input_arg
        if len(data) != len(wanted):
            reason = (
                f"calls {self.function.signature.name}, which takes {len(wanted)} arguments, with"
                f" {len(data)}"
            )
            raise errors.MalformedError(reason, file=self.graph.file, node=self.call.name)
        added = [self._argument(argument, ref) for argument, ref in zip(wanted, data)]
        ready = schema.NodeDef(name=self.ready, op="NoOp", device=self.call.device)
        ready.input.extend(
            [f"^{node.name}" for node in added] + [ref.text for ref in inputs if ref.is_control]
        )
        added.append(ready)
        added += [self._inner(node) for node in self.function.node_def]
        stub = self._stub()
        for node in added:
            self.graph.copy_node(node)
        self.call.CopyFrom(stub)
        return [node.name for node in added]

    def _argument(self, argument: schema.OpDef.ArgDef, ref: Edge) -> Any:
        node = schema.NodeDef(
            name=self.arguments[argument.name],
            op="Identity",
            input=[ref.text],
            device=self.call.device,
        )
        node.attr["T"].type = argument.type
        return node

    def _inner(self, node: schema.NodeDef) -> Any:
        copy = schema.copy_of(self.bodies[node.name])
        copy.name = self.nodes[node.name]
        copy.device = node.device or self.call.device
        copy.attr.pop("_class", None)  # it names nodes of the function
        copy.input[:] = [self._text(text) for text in node.input]
        if not copy.input and not self.makes_handle(copy):  # it runs when the function does
            copy.input.append(f"^{self.ready}")
        return copy

    def _text(self, text: str) -> str:
        """Translate an input of a node from the form of a FunctionDef to that of a GraphDef."""
        source = input_source(text, in_function=True)
        if text.startswith("^"):
            known = self.nodes.get(source) or self.arguments.get(source)
            if known is not None:
                return f"^{known}"
        elif source in self.arguments and text == source:
            return self.arguments[source]
        elif source in self.bodies:
            _, _, port = text.partition(":")
            name, _, position = port.partition(":")
            for index, (output, inside, _) in enumerate(self.ops.outputs(self.bodies[source])):
                if output == name and str(inside) == (position or "0"):
                    return Edge(self.nodes[source], str(index)).text
        reason = f"refers to {text!r}, which is not in the function"
        raise errors.MalformedError(reason, file=self.graph.file, node=self.function.signature.name)

    def _stub(self) -> Any:
        """Return the node that replaces the call: it returns the results after all nodes that the
        call must run.
        """
        results = self.function.signature.output_arg
        stub = schema.NodeDef(name=self.call.name, device=self.call.device)
        stub.op = "NoOp" if not results else "Identity" if len(results) == 1 else "IdentityN"
        if any(result.name not in self.function.ret for result in results):
            raise errors.MalformedError(
                "a result has no tensor", file=self.graph.file, node=self.function.signature.name
            )
        stub.input.extend(self._text(self.function.ret[result.name]) for result in results)
        types = [result.type for result in results]
        if len(types) == 1:
            stub.attr["T"].type = types[0]
        elif types:
            stub.attr["T"].list.type.extend(types)
        acting = [
            name
            for name, node in self.bodies.items()
            if self.ops.is_stateful(node) and not self.makes_handle(node)
        ]
        runs = dict.fromkeys([*self.function.control_ret.values(), *acting])
        controls = [f"^{self.nodes[name]}" for name in runs if name in self.nodes]
        stub.input.extend([f"^{self.ready}", *controls])
        return stub
