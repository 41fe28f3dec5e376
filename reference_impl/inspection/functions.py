"""Functions of the object graph with their traces, and the function library with what reaches it.

RFC: FN-05, FMT-03
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.references import Library
from reference_impl.inspection.signatures import slots_of
from reference_impl.inspection.text import dtype_name, flat_text, parameter_names, trace_text
from reference_impl.inspection.types import ConcreteFunction, Constant, Function, LibraryFunction, OpCount, Sizes

# Work (signatures times nodes) above which it is not worth finding out what each signature reaches.
_REACH_BUDGET = 20_000_000
_LARGEST = 5


def functions(graph: schema.SavedObjectGraph, library: Library, paths: Paths) -> tuple[Function, ...]:
    """Every function of the object graph in order of node id, with Python-like signatures of its traces."""
    found = []
    for number, node in enumerate(graph.nodes):
        kind = node.WhichOneof("kind")
        if kind == "function":
            spec: Optional[schema.FunctionSpec] = node.function.function_spec
            names = list(node.function.concrete_functions)
        elif kind == "bare_concrete_function":
            bare = node.bare_concrete_function
            spec = bare.function_spec if bare.HasField("function_spec") else None
            names = [bare.concrete_function_name]
        else:
            continue
        path = paths.names(number)
        parameters = parameter_names(spec)
        traces = tuple(
            [_trace(graph, library, paths, path[-1] if path else plain_name(name), parameters, name) for name in names]
        )
        found.append(Function(number, paths.text(number), kind == "function", traces))
    return tuple(found)


def _trace(
    graph: schema.SavedObjectGraph, library: Library, paths: Paths, display: str, parameters: list[str], name: str
) -> ConcreteFunction:
    known = name in graph.concrete_functions
    trace = graph.concrete_functions[name] if known else schema.SavedConcreteFunction()
    bound = tuple([paths.label(node) for node in trace.bound_inputs])
    if trace.HasField("canonicalized_input_signature"):
        text = trace_text(display, parameters, trace)
    elif name in library.functions:
        text = flat_text(display, library.functions[name], len(bound))
    else:
        text = f"{display}(?)"
    return ConcreteFunction(name, text, bound, name in library.functions)


class Reach:
    """Which ops and functions each signature of a MetaGraph may run, functions in attributes (branches, bodies) included.

    Args:
      meta_graph: the MetaGraph.
      library: its functions.
      calls: ``library.calls()``.
      main: the nodes of its graph.

    Attributes:
      signatures: signature -> (nodes of the main graph, functions); None when that would take too long.
    """

    def __init__(self, meta_graph: schema.MetaGraphDef, library: Library, calls: dict[str, list[str]], main: Nodes):
        self.signatures: Optional[dict[str, tuple[dict[str, None], dict[str, None]]]] = None
        work = len(main.names) + sum(map(len, calls.values()))
        if work * len(meta_graph.signature_def) > _REACH_BUDGET:
            return
        uses = {node.name: list(library.references(node)) for node in main.messages} if library.functions else {}
        self.signatures = {}
        for key, signature in sorted(meta_graph.signature_def.items()):
            tensors = [slot.tensor for info in signature.outputs.values() for slot in slots_of(info)[1]]
            reached = reachable([input_source(tensor) for tensor in tensors], main.waits)
            starts = [name for node in reached for name in uses.get(node, ())]
            self.signatures[key] = reached, reachable(starts, calls)

    def functions(self) -> Optional[dict[str, list[str]]]:
        """function -> signatures that may run it."""
        return None if self.signatures is None else _turn((key, reached[1]) for key, reached in self.signatures.items())

    def nodes(self) -> Optional[dict[str, list[str]]]:
        """node of the main graph -> signatures that may run it."""
        return None if self.signatures is None else _turn((key, reached[0]) for key, reached in self.signatures.items())


def _turn(pairs: Iterator[tuple[str, dict[str, None]]]) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {}
    for key, names in pairs:
        for name in names:
            turned.setdefault(name, []).append(key)
    return turned


def library_functions(library: Library, calls: dict[str, list[str]], reach: Reach) -> tuple[LibraryFunction, ...]:
    """Every FunctionDef in the order of the file."""
    reached = reach.functions()
    return tuple(
        [
            LibraryFunction(
                name,
                flat_text(name, function, 0),
                len(function.node_def),
                function.ByteSize(),
                tuple(calls[name]),
                None if reached is None else tuple(reached.get(name, ())),
            )
            for name, function in library.functions.items()
        ]
    )


def op_counts(main: Nodes, library: Library, reach: Reach) -> tuple[OpCount, ...]:
    """The ops of the main graph and of *all* functions, sorted by name. A call by op type is listed under its function."""
    in_main = Counter(main.ops)
    total = in_main.copy()
    users: dict[str, dict[str, None]] = {}
    signatures: dict[str, set[str]] = {}
    for key, (nodes, _) in (reach.signatures or {}).items():
        for op in {main.op_of[name] for name in nodes if name in main.op_of}:
            signatures.setdefault(op, set()).add(key)
    by_function = reach.functions() or {}
    for name, function in library.functions.items():
        counts = Counter([node.op for node in function.node_def])
        total.update(counts)
        for op in counts:
            users.setdefault(op, {})[name] = None
            if name in by_function:
                signatures.setdefault(op, set()).update(by_function[name])
    found = []
    for op in sorted(total):
        reached = None if reach.signatures is None else tuple(sorted(signatures.get(op, ())))
        found.append(OpCount(op, total[op], in_main[op], tuple(users.get(op, ())), reached))
    return tuple(found)


def sizes(meta_graph: schema.MetaGraphDef, main: Nodes, library: Library, functions: Iterable[LibraryFunction]) -> Sizes:
    """Where the bytes of a MetaGraph are. ``functions`` describes those of the library."""
    constants: list[Constant] = []
    total = 0
    found: list[tuple[Optional[str], schema.NodeDef]]
    found = [(None, node) for op, node in zip(main.ops, main.messages) if op == "Const"]
    found += [(name, node) for name, item in library.functions.items() for node in item.node_def if node.op == "Const"]
    for function, node in found:
        if "value" not in node.attr:
            continue
        tensor = node.attr["value"].tensor
        size = tensor.ByteSize()
        total += size
        if len(constants) < _LARGEST or size > constants[-1].size:
            constants.append(Constant(node.name, function, dtype_name(tensor.dtype), shape_of(tensor.tensor_shape), size))
            constants.sort(key=lambda item: -item.size)
            del constants[_LARGEST:]
    return Sizes(
        meta_graph.ByteSize(),
        sum([node.ByteSize() for node in main.messages]),
        sum([function.size for function in functions]),
        meta_graph.object_graph_def.ByteSize(),
        total,
        tuple(constants),
    )
