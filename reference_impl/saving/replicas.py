"""Let functions that were traced over the replicas of a distributed variable use the one variable that is saved.

A distributed variable has several replicas. A function that updates the variable updates each of them. A function that reads a
sum of local values adds them up. In the file all replicas are one variable. So updates of every replica but the first are
dropped, and terms of a sum are not added twice. Reading several replicas, or their mean, needs no change.

RFC: A11, DIST-04
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.names import CALLS
from reference_impl.graph.function_builder import remove_nodes
from reference_impl.graph.op_table import VARIABLE_READS
from reference_impl.kinds.export_library import Library
from reference_impl.saving.signatures import SignatureFunction
from reference_impl.saving.tree import GrowingTree

COPY, MEAN, SUM = "copy", "mean", "sum"
_Names = Mapping[int, str]
_Bound = Mapping[int, Sequence[int]]
_Replicas = Mapping[int, Mapping[int, int]]


def kind_of(variable: Any) -> str:
    """Return the kind of the replicas of a variable: copies of one value, or local values that are added up or averaged."""
    if variable.synchronization != tf.VariableSynchronization.ON_READ:
        return COPY
    return SUM if variable.aggregation == tf.VariableAggregation.SUM else MEAN


class Merger:
    """Changes functions of a library.

    Attributes:
      updated: names of the functions in which an update was dropped.
      problems: name of a function -> the node that cannot use one variable in place of several.
    """

    def __init__(self, library: Library):
        self._library = library
        self._done: set[tuple[str, int]] = set()
        self.updated: set[str] = set()
        self.problems: dict[str, str] = {}

    def merge_all(self, tree: GrowingTree, names: _Names, bound: _Bound, replicas: _Replicas, expand: bool) -> None:
        """Change all functions of a tree.

        Args:
          names, bound: number of a function's node -> its name; what its last arguments capture.
          replicas: number -> {index of a capture: which replica}, other than the first.
          expand: all replicas are written; Python's loaders make one variable of them nevertheless.

        Raises:
          SaveError: functions use replicas in a way that is impossible with one variable, or update them although they were not
            traced for an input signature, so that the trace may be that of a replica.
        """
        wrong = []
        fix = "do not expand them" if expand else "try saving a tf.function with input_signature instead"
        allowed = _with_input_signature(tree)
        for number, captures in sorted(replicas.items()):
            node, name = tree.nodes[number], names[number]
            first = len(self._library.definitions[name].signature.input_arg) - len(bound[number])
            variables = {index: tree.nodes[bound[number][index]].object for index in captures}
            updates = self.merge(name, {first + index: kind_of(variable) for index, variable in variables.items()})
            what = ", ".join(sorted({repr(str(variable.name)) for variable in variables.values()}))
            if updates and (expand or number not in allowed):
                wrong.append(f"{node.path} updates {what} across replicas; {fix}")
            if self.problems:
                wrong.append(f"{node.path} uses replicas of {what} each for itself: {', '.join(sorted(self.problems.values()))}")
                self.problems = {}
        if wrong:
            raise SaveError(f"what is loaded of a distributed variable is one variable: {'; '.join(wrong)}", node="save")

    def merge(self, function: str, arguments: Mapping[int, str]) -> bool:
        """Make a function, and those it calls, use one replica.

        Args:
          arguments: index of an argument that is a handle of another replica than the first -> the kind of variable.

        Returns:
          Whether there were updates.
        """
        definition = self._library.definitions[function]
        updates = function in self.updated
        for index, kind in arguments.items():
            if (function, index) in self._done:
                continue
            self._done.add((function, index))
            handle = definition.signature.input_arg[index].name
            for node in list(definition.node_def):
                if handle in node.input:
                    updates |= self._merge_node(definition, node, handle, kind)
        if updates:
            self.updated.add(function)
        return updates

    def _merge_node(self, definition: Any, node: Any, handle: str, kind: str) -> bool:
        if node.op in CALLS:
            places = {place: kind for place, source in enumerate(node.input) if source == handle}
            return self.merge(node.attr["f"].func.name, places)
        if node.op == "ReadVariableOp" and kind == SUM:
            self._drop_terms(definition, node)
        elif node.op not in VARIABLE_READS:
            op_def = api.op_def(node.op)
            if kind != COPY or op_def is None or op_def.output_arg:
                self._refuse(definition, node)
            else:
                remove_nodes(definition, {node.name})
                return True
        return False

    def _drop_terms(self, definition: Any, read: Any) -> None:
        """Drop the value of a replica from sums. Any other use is refused."""
        value = f"{read.name}:value:0"
        for node in definition.node_def:
            if value in node.input:
                rest = [source for source in node.input if source != value]
                if node.op != "AddN" or not rest or rest[0].startswith("^"):
                    self._refuse(definition, node)
                    continue
                del node.input[:]
                node.input.extend(rest)
                node.attr["N"].i = sum(not source.startswith("^") for source in rest)
        if value in definition.ret.values():
            self._refuse(definition, read)

    def _refuse(self, definition: Any, node: Any) -> None:
        self.problems.setdefault(definition.signature.name, f"node {node.name!r} ({node.op})")


def _with_input_signature(tree: GrowingTree) -> set[int]:
    """Return the numbers of traces of functions with an input signature, and of signatures whose function is not in the tree."""
    found: set[int] = set()
    for node in tree.nodes:
        if isinstance(node.object, api.Function) and node.object.input_signature is not None:
            found.update(node.children.values())
    for node in tree.nodes:
        target = tree.number_of(node.object.target) if isinstance(node.object, SignatureFunction) else 0
        if target is None or target in found:
            found.add(node.number)
    return found
