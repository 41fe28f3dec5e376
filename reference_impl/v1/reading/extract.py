"""Cut a part of a TF 1.x graph out as a FunctionDef: feeds become arguments, fetches results, state
captures.

A ``Session.run`` executes what its fetches need and cuts the graph at its feeds. A function cut out
in the same way does the same work, except that state must not live inside it. So nodes that make
the handle of a variable, table or iterator (the *hoisted* nodes) become trailing arguments, the
captures of the function.

RFC: V1-01, V1-09
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.argument_names import argument_name
from reference_impl.graph.edges import CONTROL, Edge, parse_input
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable, Output, output_at
from reference_impl.graph.unique_names import UniqueNames

PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_SCALAR_IS_UNKNOWN = (
    21  # graph version up to which the shape of a scalar placeholder meant an unknown shape
)


class Feed(NamedTuple):
    """An argument: its name for people, the tensor it replaces, its DataType and TensorShapeProto
    (or None).
    """

    name: str
    tensor: Edge
    dtype: int
    shape: Any


@dataclass(frozen=True)
class Extracted:
    """A function that was cut out."""

    function: Any
    captures: tuple[str, ...]  # the nodes whose handles are its last arguments
    results: tuple[str, ...]  # names of its results
    functions: tuple[Any, ...] = ()  # FunctionDefs that it calls and that were made with it
    fed: tuple[str, ...] = ()  # the nodes that its arguments replace


class UnfedPlaceholderError(errors.SavedModelError):
    """A result depends on a placeholder that the SignatureDef does not list as an input."""

    clause = "V1-01"


def extract(
    graph: Graph,
    ops: OpTable,
    name: str,
    feeds: Sequence[Feed],
    fetches: Mapping[str, Edge],
    *,
    targets: Sequence[str] = (),
    hoisted: Collection[str] = (),
    unfed: bool = False,
) -> Extracted:
    """Cut the function ``name`` out of ``graph``.

    Args:
      feeds: arguments, in order.
      fetches: result name -> tensor, in order.
      targets: nodes that must run although they are not fetched.
      hoisted: nodes that become captures if they are needed.
      unfed: leave a Placeholder that is not fed in the function; it fails when it runs, as in a
        Session.

    Raises:
      UnfedPlaceholderError: a needed Placeholder is not fed.
      MalformedError: a dangling edge, a fetch of an output that does not exist.
    """
    fed = {feed.tensor: feed for feed in feeds}
    for target in targets:
        graph.needed(target, name)
    roots = [*fetches.values(), *(Edge(target, CONTROL) for target in targets)]
    needed = graph.ancestors(roots, stop=fed, stop_nodes=hoisted)
    captures = _needed_captures(graph, needed, roots, fed, hoisted)
    if not unfed:
        _refuse_placeholders(graph, needed, name)

    builder = FunctionBuilder(
        name, any(ops.is_stateful(graph.nodes[node]) for node in needed), reserved=needed
    )
    translate = _Translator(graph, ops, frozenset(needed))
    translate.arguments = _add_arguments(
        builder, feeds, {capture: translate.dtype(Edge(capture)) for capture in captures}
    )
    for node_name in needed:
        inputs = translate.inputs(graph.nodes[node_name], graph.waits.get(node_name, ()))
        # Colocation ties a node to one that is now an argument; placement follows the captures
        # instead.
        builder.copy_node(graph.nodes[node_name], inputs, without=["_class"])
    for key, ref in fetches.items():
        dtype = fed[ref].dtype if ref in fed else translate.dtype(ref)
        builder.result(argument_name(key), translate.data(ref, ""), dtype)
    names = UniqueNames()
    for target in targets:
        builder.control_output(target, names.take(argument_name(target)))
    return Extracted(
        builder.function,
        tuple(captures),
        tuple(fetches),
        fed=tuple(feed.tensor.source for feed in feeds),
    )


def _add_arguments(
    builder: FunctionBuilder, feeds: Sequence[Feed], captures: Mapping[str, int]
) -> dict[Edge, str]:
    """Add the arguments of a function, captures (node of a handle -> DataType) last; return the
    tensors that they replace.
    """
    arguments: dict[Edge, str] = {}
    for feed in feeds:
        argument = builder.argument(
            argument_name(feed.name), feed.dtype, shape=feed.shape, user_name=feed.name
        )
        arguments.setdefault(
            feed.tensor, argument
        )  # two keys of a SignatureDef may name one tensor; the first feeds it
    for capture, dtype in captures.items():
        arguments[Edge(capture)] = builder.argument(
            argument_name(capture), dtype, user_name=capture
        )
    return arguments


def _needed_captures(
    graph: Graph,
    needed: list[str],
    roots: list[Edge],
    fed: Mapping[Edge, Feed],
    hoisted: Collection[str],
) -> list[str]:
    wanted = set(roots)
    for node in needed:
        wanted.update(map(parse_input, graph.nodes[node].input))
    names = {ref.source for ref in wanted if not ref.is_control and ref not in fed}
    return graph.in_order(name for name in names if name in hoisted and name in graph)


def _refuse_placeholders(graph: Graph, needed: list[str], name: str) -> None:
    for node_name in needed:
        if graph.nodes[node_name].op in PLACEHOLDERS:
            raise UnfedPlaceholderError(
                f"{name!r} needs this placeholder, which is none of its inputs; add it to the"
                " SignatureDef",
                file=graph.file,
                node=node_name,
            )


class _Translator:
    """``node:1`` of a GraphDef -> ``node:output_arg:0`` of a FunctionDef."""

    def __init__(self, graph: Graph, ops: OpTable, inside: frozenset[str]):
        self._graph, self._ops, self._inside = graph, ops, inside
        self.arguments: dict[Edge, str] = {}  # tensor -> the argument that replaces it
        self._outputs: dict[str, list[Output]] = {}

    def outputs(self, node: str) -> list[Output]:
        if node not in self._outputs:
            self._outputs[node] = self._ops.outputs(self._graph.needed(node, node))
        return self._outputs[node]

    def data(self, ref: Edge, wanted_by: str) -> str:
        if ref in self.arguments:
            return self.arguments[ref]
        name, position, _ = self._output(ref, wanted_by)
        return f"{ref.source}:{name}:{position}"

    def dtype(self, ref: Edge) -> int:
        """Return the DataType of a tensor. A reference leaves a function as its value."""
        return self._output(ref, "")[2] % 100

    def inputs(self, node: schema.NodeDef, waits: Sequence[Edge]) -> list[str]:
        """Return the inputs of a node in the function, without control edges to nodes outside.

        `waits` are tensors that must exist before the node runs, as those from outside do.
        """
        found = []
        for ref in map(parse_input, node.input):
            if not ref.is_control:
                found.append(self.data(ref, node.name))
            elif ref.source in self._inside:
                found.append(ref.text)
        waited = [
            f"^{ref.source}"
            for ref in waits
            if ref not in self.arguments and ref.source in self._inside
        ]
        return [*found, *(text for text in dict.fromkeys(waited) if text not in found)]

    def _output(self, ref: Edge, wanted_by: str) -> Output:
        outputs = self.outputs(ref.source)
        found = output_at(outputs, ref)
        if found is None:
            reason = f"output {ref.port} of {ref.source!r} is asked for, it has {len(outputs)}"
            if ref.is_control:
                reason = (
                    f"{ref.text!r} is a control edge, not a tensor; name one of the outputs of the"
                    " node"
                )
            raise errors.MalformedError(reason, file=self._graph.file, node=wanted_by or ref.source)
        return found


def placeholder_shape(graph: Graph, ref: Edge) -> Optional[Any]:
    """Return the TensorShapeProto of a fed Placeholder, or None."""
    node = graph.nodes.get(ref.source)
    if node is None or not node.op.startswith("Placeholder") or "shape" not in node.attr:
        return None
    shape = node.attr["shape"].shape
    unsaid = (
        not shape.dim
        and not shape.unknown_rank
        and graph.graph_def.versions.producer <= _SCALAR_IS_UNKNOWN
    )
    return None if unsaid else shape


def static_shape(graph: Graph, ref: Edge) -> Optional[Any]:
    """Return the TensorShapeProto that the exporter recorded for a tensor, or None."""
    node = graph.nodes.get(ref.source)
    shapes = (
        node.attr["_output_shapes"].list.shape
        if node is not None and "_output_shapes" in node.attr
        else ()
    )
    return shapes[ref.number] if ref.number is not None and ref.number < len(shapes) else None
