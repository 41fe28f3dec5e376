"""Detect state inside functions, which a save cannot find.

A TF 1.x MetaGraph that tf.saved_model.load imports keeps its reference variables and its tables as
nodes of the functions. Their values live in the runtime and do not belong to any object, so the
export would lose them silently.

A resource with a shared name is saved if a resource object creates it too. A resource that never
changes after it was filled is also saved if an initialiser of the export, or the function that uses
it, fills it.

RFC: V1-17
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError, listed
from reference_impl.format import schema
from reference_impl.format.names import CREATE, INITIALIZE
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.order import targets_first
from reference_impl.graph.references import FunctionIndex, nodes_of
from reference_impl.graph.variable_defs import REFERENCE_OPS
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.tree import Tree

_VARIABLES = REFERENCE_OPS | {"AutoReloadVariable"}
# Ops of resources that are empty until they are filled.
_FILLED = ("VarHandleOp", "Iterator", "IteratorV2", "DecisionTreeResourceHandleOp")
_FILLED_MARKS = ("HashTable", "BoostedTrees")


def check(tree: Tree, functions: ExportedFunctions) -> None:
    """Report all internal state of functions that the export would lose.

    Functions must have their final shared names.
    """
    created = [functions.name(number) for _, number in tree.of_resources(CREATE)]
    initialized = [functions.name(number) for _, number in tree.of_resources(INITIALIZE)]
    found = sorted(_hidden(functions.library.definitions, created, initialized))
    if found:
        reason = (
            f"the functions keep {len(found)} variables or tables of TF 1.x inside, whose values no"
            " object holds: "
        )
        reason += (
            f"{listed(found)}. Load the model with reference_impl.load, which makes objects of them"
        )
        tree.report_loss(SaveError(reason, node=found[0], clause="V1-17"), "state is left out")


class _Maker(NamedTuple):
    """The key by which the runtime finds a resource, and the node that makes it, for messages."""

    op: str
    container: bytes
    shared_name: bytes
    node: str

    @property
    def may_change(self) -> bool:
        """Whether its content may differ from the content that an initialiser gives it."""
        return self.op == "VarHandleOp" or self.op.startswith("Mutable")


_Resource = Union[_Maker, int]
_Handle = tuple[
    str, str, _Resource
]  # a node or argument, its port ("" for any), the resource behind it


def _hidden(
    definitions: Mapping[str, Any], created: Iterable[str], initialized: Iterable[str]
) -> set[str]:
    found = {node.name for node in nodes_of(definitions.values()) if node.op in _VARIABLES}
    if not any(map(_maker, nodes_of(definitions.values()))):
        return found
    library = FunctionIndex(schema.FunctionDefLibrary())
    library.functions = dict(definitions)
    calls = library.calls()

    def makers(roots: Iterable[str]) -> set[tuple[str, bytes, bytes]]:
        called = nodes_of(definitions[name] for name in reachable(roots, calls))
        return {maker[:3] for node in called if (maker := _maker(node)) is not None}

    held, filled_at_load = makers(created), makers(initialized)
    flows: dict[str, _Flow] = {}
    for name in targets_first(calls, calls.__getitem__):  # callees first, except inside a cycle
        flow = flows[name] = _Flow(definitions[name], library, flows)
        for maker in flow.used:
            if not isinstance(maker, _Maker) or maker[:3] in held:
                continue
            if maker.may_change or not (maker[:3] in filled_at_load or maker in flow.filled):
                found.add(maker.node)
    return found


def _maker(node: schema.NodeDef) -> Optional[_Maker]:
    """Return the resource that a node makes, or None unless it has a shared name and starts
    empty.
    """
    if not (node.op in _FILLED or any(mark in node.op for mark in _FILLED_MARKS)):
        return None
    attributes = dict(
        node.attr
    )  # reading a missing attribute would add an empty one to the message
    shared = attributes["shared_name"].s if "shared_name" in attributes else b""
    if (
        not shared
        and "use_node_name_sharing" in attributes
        and attributes["use_node_name_sharing"].b
    ):
        shared = node.name.encode()
    op_def = api.op_def(node.op)
    makes = (
        op_def is not None
        and len(op_def.output_arg) == 1
        and any(attr.name == "shared_name" for attr in op_def.attr)
    )
    container = attributes["container"].s if "container" in attributes else b""
    return _Maker(node.op, container, shared, node.name) if shared and makes else None


class _Flow:
    """The effects of a FunctionDef on the resources that it makes (`_Maker`) or takes (positions of
    arguments).

    `inner` has the flows of the functions that it calls.

    Attributes:
      used, filled: the resources whose handles are inputs of nodes of the function or of its
        callees.
      results: number of a result -> the resources whose handle it may be.
    """

    def __init__(
        self, function: schema.FunctionDef, library: FunctionIndex, inner: Mapping[str, _Flow]
    ):
        self.used: dict[_Resource, None] = {}
        self.filled: dict[_Resource, None] = {}
        self.results: dict[int, dict[_Resource, None]] = {}
        self._library, self._inner = library, inner
        takers: dict[str, list[tuple[Any, int, str]]] = {}
        for node in function.node_def:
            for position, text in enumerate(data_inputs(node)):
                source, port = parse_input(text, in_function=True)
                takers.setdefault(source, []).append((node, position, port))
        results: dict[str, list[tuple[int, str]]] = {}
        for number, result in enumerate(function.signature.output_arg):
            source, port = parse_input(function.ret.get(result.name, ""), in_function=True)
            results.setdefault(source, []).append((number, port))

        def handed_on(handle: _Handle) -> Iterator[_Handle]:
            source, port, resource = handle
            for number, wanted in results.get(source, ()):
                if port in ("", wanted):
                    self.results.setdefault(number, {})[resource] = None
            for node, position, wanted in takers.get(source, ()):
                if port in ("", wanted):
                    yield from self._take(node, position, resource)

        reachable(list(self._starts(function)), handed_on)

    def _starts(self, function: schema.FunctionDef) -> Iterator[_Handle]:
        for position, argument in enumerate(function.signature.input_arg):
            if argument.type == schema.DT_RESOURCE:
                yield argument.name, "", position
        for node in function.node_def:
            maker = _maker(node)
            if maker is not None:
                yield node.name, "", maker
            called = self._called(node)
            if called is not None:
                self.filled.update(
                    (made, None) for made in called.filled if isinstance(made, _Maker)
                )
                for number, made in called.results.items():
                    yield from (
                        (node.name, self._port(node, number), found)
                        for found in made
                        if isinstance(found, _Maker)
                    )

    def _take(self, node: schema.NodeDef, position: int, resource: _Resource) -> Iterator[_Handle]:
        """Record what a node does with a resource, and yield the outputs that hand it on."""
        called = self._called(node)
        if called is not None:
            if position in called.used:
                self.used[resource] = None
            if position in called.filled:
                self._fill(resource)
            for number, handed in called.results.items():
                if position in handed:
                    yield node.name, self._port(node, number), resource
        elif node.op in ("Identity", "IdentityN"):
            yield node.name, f"output:{position}" if node.op == "IdentityN" else "", resource
        elif _fills(node):
            self._fill(resource)
        else:
            self.used[resource] = None

    def _fill(self, resource: _Resource) -> None:
        self.filled[resource] = None
        if isinstance(resource, _Maker) and resource.may_change:
            self.used[resource] = None

    def _called(self, node: schema.NodeDef) -> Optional[_Flow]:
        return self._inner.get(self._library.called(node) or "")

    def _port(self, node: schema.NodeDef, number: int) -> str:
        """Return the output of a call that is result ``number`` of the function."""
        if node.op in self._library.functions:
            return f"{self._library.functions[node.op].signature.output_arg[number].name}:0"
        return f"output:{number}"


def _fills(node: schema.NodeDef) -> bool:
    """Return whether a node changes the resource that it takes and has no results."""
    op_def = api.op_def(node.op)
    return op_def is not None and not op_def.output_arg
