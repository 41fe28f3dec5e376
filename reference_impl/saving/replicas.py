"""Change functions that were traced over the replicas of a distributed variable to use the one
variable that is saved.

A function that updates a distributed variable updates each of its replicas. A function that reads a
sum of local values adds the replicas up. In the file all replicas are one variable, so updates of
every replica but the first are dropped, and terms of a sum are not added twice. Reading several
replicas, or their mean, needs no change. Finally, a function takes the variable only once: XLA
refuses a function that takes it as two arguments.

RFC: A11, DIST-04
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import CALLS, base_name
from reference_impl.functions.names import ExportName
from reference_impl.graph.function_builder import remove_nodes, replace_tensors, select_arguments
from reference_impl.graph.op_table import VARIABLE_READS
from reference_impl.graph.references import named_by, nodes_of
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.signatures import SignatureFunction
from reference_impl.saving.tree import GrowingTree

COPY, MEAN, SUM = "copy", "mean", "sum"


def _kind_of(variable: tf.Variable) -> str:
    """Return the kind of the replicas of a variable: copies of one value, or local values that are
    added up or averaged.
    """
    if variable.synchronization != tf.VariableSynchronization.ON_READ:
        return COPY
    return SUM if variable.aggregation == tf.VariableAggregation.SUM else MEAN


class Merger:
    """Changes the functions of an export.

    `names` and `bound` are those of `reference_impl.saving.collect.Functions`.
    """

    def __init__(
        self,
        tree: GrowingTree,
        library: ExportLibrary,
        names: dict[int, ExportName],
        bound: dict[int, list[int]],
    ):
        self._tree, self._library, self._names, self._bound = tree, library, names, bound
        self._done: set[tuple[str, int]] = set()
        self._updated: set[str] = set()  # functions in which an update was dropped
        self._problems: dict[
            str, str
        ] = {}  # name of a function -> the node that cannot use one variable instead of several
        self._shortened: dict[tuple[ExportName, tuple[tuple[int, int], ...]], ExportName] = {}

    def use_first_replica(self, replicas: Mapping[int, Mapping[int, int]], expand: bool) -> None:
        """Change all functions to use the first replica of each variable.

        Args:
          replicas: number of a function's node -> {index of a capture: which replica}, other than
            the first.
          expand: all replicas are saved, though loaders in Python make one variable of them.

        Raises:
          SaveError: a function uses replicas in a way that is impossible with one variable. Or a
            function that was not traced for an input signature updates them, so that its trace may
            be that of one replica.
        """
        wrong = []
        fix = (
            "do not expand them"
            if expand
            else "try saving a tf.function with input_signature instead"
        )
        allowed = _with_input_signature(self._tree)
        for number, captures in sorted(replicas.items()):
            path, first = self._tree.nodes[number].path, self._first_capture(number)
            variables = {
                index: self._tree.nodes[self._bound[number][index]].object for index in captures
            }
            kinds = {first + index: _kind_of(variable) for index, variable in variables.items()}
            updates = self._merge(self._names[number], kinds)
            what = ", ".join(sorted({repr(str(variable.name)) for variable in variables.values()}))
            if updates and (expand or number not in allowed):
                wrong.append(f"{path} updates {what} across replicas; {fix}")
            if self._problems:
                wrong.append(
                    f"{path} uses replicas of {what} each for itself:"
                    f" {', '.join(sorted(self._problems.values()))}"
                )
                self._problems = {}
        if wrong:
            raise SaveError(
                f"what is loaded of a distributed variable is one variable: {'; '.join(wrong)}",
                node="save",
            )

    def _first_capture(self, number: int) -> int:
        return len(self._library.definitions[self._names[number]].signature.input_arg) - len(
            self._bound[number]
        )

    def _merge(self, function: ExportName, arguments: Mapping[int, str]) -> bool:
        """Change a function and its callees to use one replica; return whether there were updates.

        `arguments`: index of an argument that is the handle of a replica other than the first ->
        the kind of variable.
        """
        definition = self._library.definitions[function]
        updates = function in self._updated
        for index, kind in arguments.items():
            if (function, index) in self._done:
                continue
            self._done.add((function, index))
            handle = definition.signature.input_arg[index].name
            for node in list(definition.node_def):
                if handle in node.input:
                    updates |= self._merge_node(definition, node, handle, kind)
        if updates:
            self._updated.add(function)
        return updates

    def _merge_node(
        self, definition: schema.FunctionDef, node: schema.NodeDef, handle: str, kind: str
    ) -> bool:
        if node.op in CALLS:
            places = {place: kind for place, source in enumerate(node.input) if source == handle}
            return self._merge(ExportName(node.attr["f"].func.name), places)
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

    def _drop_terms(self, definition: schema.FunctionDef, read: schema.NodeDef) -> None:
        """Drop the value of a replica from sums; refuse any other use."""
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

    def _refuse(self, definition: schema.FunctionDef, node: schema.NodeDef) -> None:
        self._problems.setdefault(definition.signature.name, f"node {node.name!r} ({node.op})")

    # Several captures of one variable

    def take_once(self, numbers: Iterable[int]) -> None:
        """Remove repeated captures from the functions of some nodes.

        Changes `names` and `bound`.
        """
        before: dict[ExportName, None] = {}
        for number in numbers:
            first, repeats = self._first_capture(number), _repeats(self._bound[number])
            if repeats:
                before[self._names[number]] = None
                same = {first + index: first + earlier for index, earlier in repeats.items()}
                self._names[number] = self._with_fewer(self._names[number], same)
                self._bound[number] = list(dict.fromkeys(self._bound[number]))
        used: set[str] = set(self._names.values())
        for node in nodes_of(self._library.definitions.values()):
            used.update(named_by(node))
        for name in before:
            if name not in used:
                del self._library.definitions[name]

    def _with_fewer(self, name: ExportName, same: Mapping[int, int]) -> ExportName:
        """Return the name of a function without some arguments.

        `same`: position of an argument -> that of its replacement.
        """
        key = name, tuple(sorted(same.items()))
        if key not in self._shortened:
            out = schema.copy_of(self._library.definitions[name])
            arguments = [argument.name for argument in out.signature.input_arg]
            renamed = {arguments[index]: arguments[other] for index, other in same.items()}
            replace_tensors(out, lambda text: renamed.get(text, text))
            for node in out.node_def:
                if node.op in CALLS:
                    self._shorten_call(node, set(renamed.values()))
            select_arguments(out, [index for index in range(len(arguments)) if index not in same])
            self._shortened[key] = self._library.write(out, base_name(name))
        return self._shortened[key]

    def _shorten_call(self, node: schema.NodeDef, shared: set[str]) -> None:
        same = {
            index: earlier
            for index, earlier in _repeats(node.input).items()
            if node.input[index] in shared
        }
        if same:
            called = ExportName(node.attr["f"].func.name)
            node.attr["f"].func.name = self._with_fewer(called, same)
            for index in sorted(same, reverse=True):
                del node.input[index]
                del node.attr["Tin"].list.type[index]


def _repeats(items: Iterable[Any]) -> dict[int, int]:
    """Return the position of each item that occurred before -> the position of its first
    occurrence.
    """
    first: dict[Any, int] = {}
    return {
        index: first[item]
        for index, item in enumerate(items)
        if first.setdefault(item, index) != index
    }


def _with_input_signature(tree: GrowingTree) -> set[int]:
    """Return the numbers of traces of functions with input signatures, and of signatures whose
    function is not in the tree.
    """
    found: set[int] = set()
    for node in tree.nodes:
        if isinstance(node.object, api.Function) and node.object.input_signature is not None:
            found.update(node.children.values())
    for node in tree.nodes:
        target = (
            tree.number_of(node.object.target) if isinstance(node.object, SignatureFunction) else 0
        )
        if target is None or target in found:
            found.add(node.number)
    return found
