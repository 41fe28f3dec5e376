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

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import CALLS, base_name
from reference_impl.functions.names import ExportName
from reference_impl.graph.function_builder import remove_nodes, replace_tensors, select_arguments
from reference_impl.graph.op_table import VARIABLE_READS
from reference_impl.graph.references import names_in, nodes_of
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.exported_functions import ExportedFunction
from reference_impl.saving.signature_function import SignatureFunction
from reference_impl.saving.tree import Tree

COPY, MEAN, SUM = "copy", "mean", "sum"


def _kind_of(variable: tf.Variable) -> str:
    """Return the kind of the replicas of a variable: copies of one value, or local values that are
    added up or averaged.
    """
    if variable.synchronization != tf.VariableSynchronization.ON_READ:
        return COPY
    return SUM if variable.aggregation == tf.VariableAggregation.SUM else MEAN


class ReplicaMerger:
    """Changes functions in the library of an export."""

    def __init__(self, tree: Tree, library: ExportLibrary):
        self._tree, self._library = tree, library
        self._done: set[tuple[ExportName, int]] = set()
        self._updated: set[ExportName] = set()  # functions in which an update was dropped
        # Name of a function -> the node that cannot use one variable instead of several.
        self._problems: dict[str, str] = {}
        self._shortened: dict[tuple[ExportName, tuple[tuple[int, int], ...]], ExportName] = {}

    def merged(
        self, functions: Mapping[int, ExportedFunction], changed: Collection[int], expand: bool
    ) -> Mapping[int, ExportedFunction]:
        """Return functions that use one variable in place of its replicas.

        Args:
          functions: by the number of their node.
          changed: the numbers of functions that may capture a variable more than once for another
            reason.
          expand: all replicas are saved, though loaders in Python make one variable of them.

        Raises:
          SaveError: a function uses replicas in a way that is impossible with one variable. Or a
            function that was not traced for an input signature updates them, so that its trace may
            belong to one replica.
        """
        using = {number: item for number, item in functions.items() if item.replicas}
        self._use_first_replica(using, expand)
        if expand:
            return functions
        return self._with_unique_captures(functions, {*using, *changed})

    def _use_first_replica(self, functions: Mapping[int, ExportedFunction], expand: bool) -> None:
        """Change functions to use the first replica of each variable."""
        wrong = []
        fix = (
            "do not expand them"
            if expand
            else "try saving a tf.function with input_signature instead"
        )
        allowed = _with_input_signature(self._tree) if functions else set()
        for number, function in sorted(functions.items()):
            path, first = self._tree.nodes[number].path, self._first_capture(function)
            variables = {
                index: self._tree.nodes[function.captures[index]].object
                for index in function.replicas
            }
            kinds = {first + index: _kind_of(variable) for index, variable in variables.items()}
            updates = self._merge(function.name, kinds)
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

    def _first_capture(self, function: ExportedFunction) -> int:
        """Return the position of the first captured argument of a function."""
        arguments = self._library.definitions[function.name].signature.input_arg
        return len(arguments) - len(function.captures)

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

    def _with_unique_captures(
        self, functions: Mapping[int, ExportedFunction], numbers: Iterable[int]
    ) -> Mapping[int, ExportedFunction]:
        """Return all functions, those of some nodes without repeated captures and without replicas.

        A function that nothing uses any more leaves the library.
        """
        out = dict(functions)
        replaced: dict[ExportName, None] = {}
        for number in sorted(numbers):
            function = functions[number]
            first, repeats = self._first_capture(function), _repeats(function.captures)
            name = function.name
            if repeats:
                replaced[name] = None
                same = {first + index: first + earlier for index, earlier in repeats.items()}
                name = self._with_fewer(name, same)
            unique = list(dict.fromkeys(function.captures))
            out[number] = ExportedFunction(name, function.trace, unique)
        if replaced:
            self._remove_unused(replaced, {function.name for function in out.values()})
        return out

    def _remove_unused(self, names: Iterable[ExportName], used: set[ExportName]) -> None:
        """Remove functions that are not in `used` and that no function of the library names."""
        mentioned = names_in(nodes_of(self._library.definitions.values()))
        for name in names:
            if name not in used and name not in mentioned:
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


def _with_input_signature(tree: Tree) -> set[int]:
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
