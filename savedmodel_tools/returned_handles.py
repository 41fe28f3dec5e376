"""Handles that a function makes and returns to its caller: importers of 1.14 to 2.2 read freed
memory if one is used.

For a handle that a call returns, shape inference of these releases keeps pointers to the shapes of
its content, which are freed after the call. When an op reads them, the process dies or sees other
shapes; seen in genuine 1.14, 1.15, 2.0, 2.1 and 2.2 (not in 1.13, not in 2.3). TensorFlow writes
such calls when it saves again what it has loaded: each generation of a mutable table is made by a
function that calls the one before.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from reference_impl.errors import LimitError
from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs, output_number, parse_input
from reference_impl.graph.references import FunctionIndex

FIRST, FIXED = "1.14", "2.3"
# Ops whose result tells shapes of what it holds. HashTableV2 and the like do not.
MAKERS = frozenset(
    {
        "EmptyTensorList",
        "MutableDenseHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
        "TensorArrayV3",
        "TensorListFromTensor",
        "TensorListReserve",
        "VarHandleOp",
    }
)
# What may stand in a function beside the maker if its caller may make the handle itself.
_EMPTY = frozenset({"Identity", "NoOp"})
_MAX_STEPS = 1_000_000  # in all: Identity after Identity, call after call


class Made(NamedTuple):
    """A handle: the node that makes it, and the functions from the one that is called to the one
    that holds this node.
    """

    node: schema.NodeDef
    functions: tuple[str, ...]


class ReturnedHandles:
    """The handles that functions of a library make and return."""

    def __init__(self, library: schema.FunctionDefLibrary) -> None:
        self.library = FunctionIndex(library)
        self._nodes: dict[str, dict[str, schema.NodeDef]] = {}
        self._made = functools.cache(self._find)
        self._steps = 0

    def used(
        self, nodes: Iterable[schema.NodeDef], in_function: bool = False, returned: bool = True
    ) -> Iterator[tuple[schema.NodeDef, Made]]:
        """Calls among the nodes of a graph, or of a function's body, that hand out such a handle to
        another of them.

        ``returned``: whether an Identity counts, by which a function hands the handle on.
        """
        nodes = list(nodes)
        calls = {node.name: node for node in nodes if self.library.called(node) is not None}
        found: dict[tuple[str, str], None] = {}
        users = [node for node in nodes if returned or node.op != "Identity"]
        for node in users if calls else ():
            for text in data_inputs(node):
                edge = parse_input(text, in_function)
                if edge.source in calls:
                    found[edge.source, edge.port] = None
        for name, port in found:
            made = self._made(self.library.called(calls[name]), output_number(port))
            if made is not None:
                yield calls[name], made

    def instead(self, call: schema.NodeDef, made: Made) -> bool:
        """Return whether the node that makes the handle can replace the call: the call does nothing
        else, and an attribute, not the node, names the resource."""
        named = "shared_name" in made.node.attr and made.node.attr["shared_name"].s
        if not named or data_inputs(call) or data_inputs(made.node):
            return False
        for name in made.functions:
            function = self.library.functions[name]
            others = [node for node in function.node_def if node.op not in _EMPTY]
            if (
                len(others) != 1
                or len(function.signature.output_arg) != 1
                or function.signature.input_arg
            ):
                return False
        return True

    def _find(self, name: Optional[str], output: int) -> Optional[Made]:
        """Return the handle that an output of a function is, if this function or one that it calls
        makes it.

        Raises LimitError.
        """
        functions: list[str] = []
        text = self._result(name, output)
        seen = set[tuple[str, str]]()
        while name is not None and text is not None and (name, text) not in seen:
            seen.add((name, text))
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise LimitError(
                    "too many calls to follow what they return", node=name, limit="_MAX_STEPS"
                )
            if not functions or functions[-1] != name:
                functions.append(name)
            edge = parse_input(text, True)
            node = self._body(name).get(edge.source)
            if node is None:
                return None
            called = self.library.called(node)
            if called is not None:
                name, text = called, self._result(called, edge.number)
            elif node.op in MAKERS:
                return Made(node, tuple(functions))
            elif node.op == "Identity" and node.input:
                text = node.input[0]
            else:
                return None
        return None

    def _result(self, name: Optional[str], output: Optional[int]) -> Optional[str]:
        function = self.library.functions.get(name or "")
        if function is None or output is None or output >= len(function.signature.output_arg):
            return None
        return function.ret.get(function.signature.output_arg[output].name)

    def _body(self, name: str) -> dict[str, schema.NodeDef]:
        if name not in self._nodes:
            self._nodes[name] = {node.name: node for node in self.library.functions[name].node_def}
        return self._nodes[name]
