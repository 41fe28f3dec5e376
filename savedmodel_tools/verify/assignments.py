"""Which nodes of the main graph, variables and tables, some computation assigns or fills: through
identities and calls.

A function is looked at once: which of its arguments it assigns, also by calls of its own and by
branches and loops that it hands them to. No frames, no depth: a library of a million calls costs
its size.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Optional

from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.graph.closure import reversed_edges
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.functional_ops import first_argument
from reference_impl.graph.graph_view import Reached
from reference_impl.graph.references import CALL_OPS, FunctionIndex

ASSIGN = frozenset(
    {"Assign", "AssignVariableOp", "AssignAdd", "AssignAddVariableOp", "AssignVariableXlaConcatND"}
)
FILL = frozenset(
    {
        "InitializeTable",
        "InitializeTableV2",
        "InitializeTableFromTextFile",
        "InitializeTableFromTextFileV2",
        "InitializeTableFromDataset",
        "LookupTableImport",
        "LookupTableImportV2",
    }
)
_SAME = frozenset(
    {"Identity", "IdentityN", "Switch", "RefSwitch", "Enter", "RefEnter", "Merge", "RefIdentity"}
)


class Assignments:
    """The analysis of one MetaGraph: its functions, the nodes of its main graph by name, the ops
    that assign their first input.

    ``calls`` is what ``library.calls()`` gives, where it is known.
    """

    def __init__(
        self,
        library: FunctionIndex,
        nodes: Mapping[str, schema.NodeDef],
        ops: frozenset[str] = ASSIGN,
        calls: Optional[Mapping[str, list[str]]] = None,
    ):
        self._library = library
        self._calls = library.calls() if calls is None else calls
        self._nodes = nodes
        self._ops = ops
        self._functions: dict[str, dict[str, schema.NodeDef]] = {}
        self._work = 0
        self._arguments = self._assigned_arguments()

    def assigned(self, reached: Reached) -> set[str]:
        """Return the nodes of the main graph whose state the ``reached`` nodes assign.

        Raises LimitError.
        """
        found: set[str] = set()
        for name in reached.nodes:
            node = self._nodes.get(name)
            if node is not None:
                for text in self._touched(node):
                    found.update(self._origins(text, self._nodes, False))
        return found

    def assigned_arguments(self, function: str) -> set[int]:
        """Return the numbers of the arguments that a function of the library assigns."""
        return self._arguments.get(function, set())

    def _touched(self, node: schema.NodeDef) -> list[str]:
        """Return the inputs of a node that it assigns, itself or by calls."""
        inputs = data_inputs(node)
        if node.op in self._ops:
            return inputs[:1]
        found = []
        for called, first in self._callees(node):
            found += [
                inputs[index + first]
                for index in self._arguments.get(called, ())
                if index + first < len(inputs)
            ]
        return found

    def _callees(self, node: schema.NodeDef) -> list[tuple[str, int]]:
        """Functions that a node hands its inputs to, and how many of its inputs come before their
        arguments.
        """
        library = self._library
        called: Optional[str] = library.called(node)
        if called is not None:
            return [(called, 0)]
        if node.op in CALL_OPS or not any(
            value.HasField("func") or value.list.func for value in node.attr.values()
        ):
            return []
        first = first_argument(node.op) or 0
        return [(name, first) for name in sorted(set(library.references(node)))]

    def _assigns(self, function: schema.FunctionDef) -> bool:
        return any(node.op in self._ops for node in function.node_def)

    def _assigned_arguments(self) -> dict[str, set[int]]:
        """Function -> numbers of the arguments that it assigns; to a fixed point, from the
        assignments to the callers.
        """
        library = self._library
        callers = reversed_edges(self._calls.items())
        found: dict[str, set[int]] = {}
        self._arguments = found
        pending = [name for name, item in library.functions.items() if self._assigns(item)]
        while pending:
            name = pending.pop()
            function = library.functions[name]
            self._spend(len(function.node_def), name)
            if name not in self._functions:
                self._functions[name] = {node.name: node for node in function.node_def}
            numbers = {
                argument.name: index for index, argument in enumerate(function.signature.input_arg)
            }
            touched = list(itertools.chain.from_iterable(map(self._touched, function.node_def)))
            sources: set[str] = set()
            for text in touched:
                sources.update(self._origins(text, self._functions[name], True))
            now = {numbers[source] for source in sources if source in numbers}
            if not now <= found.get(name, set()):
                found.setdefault(name, set()).update(now)
                pending.extend(sorted(callers.get(name, ())))
        return found

    def _origins(
        self, text: str, nodes: Mapping[str, schema.NodeDef], in_function: bool
    ) -> set[str]:
        """Return the nodes and arguments that a handle may come from."""
        found, pending, seen = set(), [text], set[str]()
        while pending:
            source = parse_input(pending.pop(), in_function).source
            if source in seen:
                continue
            seen.add(source)
            node = nodes.get(source)
            if node is not None and node.op in _SAME:
                self._spend(len(node.input), source)
                pending.extend(data_inputs(node))
            else:
                found.add(source)
        return found

    def _spend(self, nodes: int, where: str) -> None:
        self._work += nodes
        if self._work > limits.ASSIGNMENT_NODES:
            reason = "too many nodes to follow what is assigned"
            raise LimitError(reason, node=where, limit="ASSIGNMENT_NODES")
