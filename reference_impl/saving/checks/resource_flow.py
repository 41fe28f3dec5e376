"""Follow the resources that a function makes or takes through its nodes and the functions that it
calls.

RFC: V1-17
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.references import FunctionIndex

# Ops of resources that are empty until they are filled.
_FILLED = ("VarHandleOp", "Iterator", "IteratorV2", "DecisionTreeResourceHandleOp")
_FILLED_MARKS = ("HashTable", "BoostedTrees")


class Maker(NamedTuple):
    """The key by which the runtime finds a resource, and the node that makes it, for messages."""

    op: str
    container: bytes
    shared_name: bytes
    node: str

    @property
    def may_change(self) -> bool:
        """Whether its content may differ from the content that an initialiser gives it."""
        return self.op == "VarHandleOp" or self.op.startswith("Mutable")


_Resource = Union[Maker, int]
_Handle = tuple[
    str, str, _Resource
]  # a node or argument, its port ("" for any), the resource behind it


def may_make(op: str) -> bool:
    """Return whether an op may make a resource that is empty until it is filled."""
    return op in _FILLED or any(mark in op for mark in _FILLED_MARKS)


def maker_of(node: schema.NodeDef) -> Optional[Maker]:
    """Return the resource that a node makes, or None unless it has a shared name and starts
    empty.
    """
    if not may_make(node.op):
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
    return Maker(node.op, container, shared, node.name) if shared and makes else None


class ResourceFlow:
    """The effects of a FunctionDef on the resources that it makes (`Maker`) or takes (positions of
    arguments).

    `inner` has the flows of the functions that it calls.

    Attributes:
      used, filled: the resources whose handles are inputs of nodes of the function or of its
        callees.
      results: number of a result -> the resources whose handle it may be.
    """

    def __init__(
        self,
        function: schema.FunctionDef,
        library: FunctionIndex,
        inner: Mapping[str, ResourceFlow],
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

        def forwarded(handle: _Handle) -> Iterator[_Handle]:
            source, port, resource = handle
            for number, wanted in results.get(source, ()):
                if port in ("", wanted):
                    self.results.setdefault(number, {})[resource] = None
            for node, position, wanted in takers.get(source, ()):
                if port in ("", wanted):
                    yield from self._take(node, position, resource)

        reachable(list(self._starts(function)), forwarded)

    def _starts(self, function: schema.FunctionDef) -> Iterator[_Handle]:
        for position, argument in enumerate(function.signature.input_arg):
            if argument.type == schema.DT_RESOURCE:
                yield argument.name, "", position
        for node in function.node_def:
            maker = maker_of(node)
            if maker is not None:
                yield node.name, "", maker
            called = self._called(node)
            if called is not None:
                self.filled.update(
                    (made, None) for made in called.filled if isinstance(made, Maker)
                )
                for number, made in called.results.items():
                    yield from (
                        (node.name, self._port(node, number), found)
                        for found in made
                        if isinstance(found, Maker)
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
        if isinstance(resource, Maker) and resource.may_change:
            self.used[resource] = None

    def _called(self, node: schema.NodeDef) -> Optional[ResourceFlow]:
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
