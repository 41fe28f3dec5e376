"""Describe the functions of the object graph with their traces, and the function library with the
signatures that reach it.

RFC: FN-05, FMT-03
"""

from __future__ import annotations

import heapq
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable

from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import traces
from reference_impl.graph.references import FunctionIndex
from reference_impl.views.text import dtype_name, flat_text, parameter_names, trace_text
from reference_impl.views.types import (
    ConcreteFunction,
    Constant,
    Function,
    LibraryFunction,
    OpCount,
    Sizes,
)

_LARGEST = 5


def functions(
    graph: schema.SavedObjectGraph, library: FunctionIndex, paths: Paths
) -> tuple[Function, ...]:
    """Describe every function of the object graph in order of node id, with Python-like signatures
    of its traces.
    """
    found = []
    declared = _Declarations()
    for number, node in enumerate(graph.nodes):
        kind = node.WhichOneof("kind")
        if kind not in ("function", "bare_concrete_function"):
            continue
        path = paths.names(number)
        spec = getattr(node, kind).function_spec
        described = [
            _trace(
                graph, library, paths, path[-1] if path else plain_name(name), spec, name, declared
            )
            for name in traces(node)
        ]
        found.append(Function(number, paths.text(number), kind == "function", tuple(described)))
    return tuple(found)


class _Declarations:
    """Declarations of traces. Equal traces, as those of repeated layers, are written once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes, bytes], str] = {}

    def text(
        self, name: str, spec: schema.FunctionSpec, trace: schema.SavedConcreteFunction
    ) -> str:
        """Return what `trace_text` does for a trace of a function with this name."""
        key = (
            spec.SerializeToString(),
            trace.canonicalized_input_signature.SerializeToString(),
            trace.output_signature.SerializeToString(),
        )
        if key not in self._known:
            self._known[key] = trace_text("", parameter_names(spec), trace)
        return name + self._known[key]


def _trace(
    graph: schema.SavedObjectGraph,
    library: FunctionIndex,
    paths: Paths,
    display: str,
    spec: schema.FunctionSpec,
    name: str,
    declared: _Declarations,
) -> ConcreteFunction:
    known = name in graph.concrete_functions
    trace = graph.concrete_functions[name] if known else schema.SavedConcreteFunction()
    bound = tuple([paths.label(node) for node in trace.bound_inputs])
    if trace.HasField("canonicalized_input_signature"):
        text = declared.text(display, spec, trace)
    elif name in library.functions:
        text = flat_text(display, library.functions[name], len(bound))
    else:
        text = f"{display}(?)"
    return ConcreteFunction(name, text, bound, name in library.functions)


def library_functions(view: GraphView) -> tuple[LibraryFunction, ...]:
    """Describe every FunctionDef, in the order of the file."""
    reached = view.signatures_of_function
    return tuple(
        LibraryFunction(
            name,
            flat_text(name, function, 0),
            len(function.node_def),
            function.ByteSize(),
            tuple(view.calls[name]),
            None if reached is None else tuple(reached.get(name, ())),
        )
        for name, function in view.library.functions.items()
    )


def op_counts(view: GraphView) -> tuple[OpCount, ...]:
    """Count the ops of the main graph and of *all* functions, sorted by name.

    A call by op type is listed under its function.
    """
    in_main = Counter(view.main.ops)
    total = in_main.copy()
    users: dict[str, list[str]] = defaultdict(list)
    signatures: dict[str, set[str]] = defaultdict(set)
    for key, (nodes, _) in (view.by_signature or {}).items():
        for op in {view.main.op_of[name] for name in nodes if name in view.main.op_of}:
            signatures[op].add(key)
    by_function = view.signatures_of_function or {}
    for name in view.library.functions:
        counts = Counter(view.function_nodes[name].ops)
        total.update(counts)
        for op in counts:
            users[op].append(name)
            signatures[op].update(by_function.get(name, ()))
    unknown = view.by_signature is None
    return tuple(
        OpCount(
            op,
            total[op],
            in_main[op],
            tuple(users[op]),
            None if unknown else tuple(sorted(signatures[op])),
        )
        for op in sorted(total)
    )


def sizes(view: GraphView, functions: Iterable[LibraryFunction]) -> Sizes:
    """Return the sizes of the parts of a MetaGraph.

    ``functions`` describes the functions of the library.
    """
    constants = [
        (node.attr["value"].tensor.ByteSize(), function, node)
        for function, node in view.of_op({"Const"})
        if "value" in node.attr
    ]
    largest = []
    for size, function, node in heapq.nlargest(_LARGEST, constants, key=operator.itemgetter(0)):
        tensor = node.attr["value"].tensor
        largest.append(
            Constant(
                node.name, function, dtype_name(tensor.dtype), shape_of(tensor.tensor_shape), size
            )
        )
    return Sizes(
        view.proto.ByteSize(),
        sum([node.ByteSize() for node in view.main.messages]),
        sum([function.size for function in functions]),
        view.proto.object_graph_def.ByteSize(),
        sum([size for size, _, _ in constants]),
        tuple(largest),
    )
