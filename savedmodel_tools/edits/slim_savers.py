"""Remove checkpoint keys from the ops of a saver, with all nodes that only served them (FMT-06,
RP-08).

TF 1.x restores in the main graph (``RestoreV2 -> (Identity) -> Assign``), TF 2.x in a function that
is called with the handles of all variables; there its arguments, and those of the call, become
fewer too. An op that is none of these is refused by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.graph.edges import CONTROL, parse_input
from reference_impl.graph.function_builder import remove_nodes, select_arguments
from reference_impl.graph.node_defs import string_tensor, strings_of_constant
from reference_impl.graph.references import CALL_OPS, FunctionIndex
from savedmodel_tools.edits.objects import keep_only
from savedmodel_tools.edits.proof import RefusedError

_PASSING = frozenset({"Identity", "Reshape", "Cast", "EnsureShape", "Snapshot", "StopGradient"})
_SINKS = frozenset({"Assign", "AssignVariableOp"})
_OLD = frozenset({"Restore", "RestoreSlice", "Save", "SaveSlices"})
_READING = frozenset({"Identity", "ReadVariableOp", "DisableCopyOnRead", "Const", "Cast"})
_DEPTH = 64
_DEAD = "\0"  # stands in inputs for a tensor that is not restored any more; no node is called so


def drop_keys(
    graph: schema.MetaGraphDef, saver: schema.SaverDef, keys: set[str], file: str
) -> set[str]:
    """Take checkpoint keys out of the ops of a saver of a MetaGraph; return the functions that were
    changed.

    Raises RefusedError: an op stands in between that is not known, or the names are computed when
    it runs.
    """
    work = _Work(graph, keys, file)
    main = graph.graph_def
    starts = [
        parse_input(text).source for text in (saver.restore_op_name, saver.save_tensor_name) if text
    ]
    nodes = {node.name: node for node in main.node}
    scope: set[str] = set()
    while starts:
        name = starts.pop()
        if name in nodes and name not in scope:
            scope.add(name)
            starts += [parse_input(text).source for text in nodes[name].input]
    work.body(main.node, [node for node in main.node if node.name in scope], None, 0)
    return work.changed


class _Work:
    def __init__(self, graph: schema.MetaGraphDef, keys: set[str], file: str) -> None:
        self.graph, self.keys, self.file = graph, keys, file
        self.library = FunctionIndex(graph.graph_def.library)
        self.functions = {item.signature.name: item for item in graph.graph_def.library.function}
        self.done: set[str] = set()
        self.changed: set[str] = set()

    def refuse(self, reason: str, node: str) -> RefusedError:
        return RefusedError(
            f"{reason}: optimizers cannot be dropped here (--keep optimizer slims the rest)",
            file=self.file,
            node=node,
        )

    def body(
        self,
        nodes: Any,
        scope: list[schema.NodeDef],
        function: Optional[schema.FunctionDef],
        depth: int,
    ) -> None:
        """Do it in one body, the functions that it calls first."""
        if depth > _DEPTH:
            raise self.refuse("calls nest too deeply", scope[0].name)
        where = "" if function is None else function.signature.name
        for node in scope:
            called = self.library.called(node)
            if called is not None and called not in self.done:
                self.done.add(called)
                inner = self.functions[called]
                before = len(inner.signature.input_arg)
                self.body(inner.node_def, list(inner.node_def), inner, depth + 1)
                if called in self.changed:
                    self.changed.add(where)
                    if len(inner.signature.input_arg) != before and node.op not in CALL_OPS:
                        raise self.refuse("it is called in a way that is not known", node.name)
        body = _Body(self, nodes, scope, function)
        if body.edit():
            self.changed.add(where)
            body.delete(nodes)
        self.changed.discard("")

    def shorten(self, name: str, gone: list[int]) -> None:
        """Take inputs out of all calls of a function."""
        containers = [
            self.graph.graph_def.node,
            *[function.node_def for function in self.functions.values()],
        ]
        for node in itertools.chain.from_iterable(containers):
            if name not in self.library.references(node):
                continue
            if node.op not in CALL_OPS or self.library.called(node) != name:
                raise self.refuse(f"{name} is more than called", node.name)
            data = [
                position for position, text in enumerate(node.input) if not text.startswith("^")
            ]
            for position in sorted((data[index] for index in gone), reverse=True):
                del node.input[position]
            types = node.attr["Tin"].list.type
            types[:] = [value for index, value in enumerate(types) if index not in gone]
            if "_read_only_resource_inputs" in node.attr:
                numbers = node.attr["_read_only_resource_inputs"].list.i
                numbers[:] = [_moved(index, gone) for index in numbers if index not in gone]


class _Body:
    """A main graph or a function whose savers lose keys."""

    def __init__(
        self,
        work: _Work,
        nodes: Any,
        scope: list[schema.NodeDef],
        function: Optional[schema.FunctionDef],
    ) -> None:
        self.work, self.all, self.scope, self.function = work, nodes, scope, function
        self.nodes = {node.name: node for node in scope}
        self.before = set(_inputs(nodes)) if function is not None else set()
        self.removed: set[str] = set()
        self.freed: list[str] = []
        self.lists: dict[str, list[int]] = {}

    def source(self, text: str) -> tuple[str, str]:
        return parse_input(text, self.function is not None)

    def edit(self) -> bool:
        """Mark what goes; False when nothing does."""
        for node in self.scope:
            if node.op == "RestoreV2":
                self._restore(node)
            elif node.op == "SaveV2":
                self._save(node)
            elif node.op in _OLD and self._strings(node, 1) & self.work.keys:
                raise self.work.refuse(f"{node.op} is of checkpoints in format V1", node.name)
        if not self.removed and not self.lists:
            return False
        while sum(self._consume(node) for node in self.all if node.name not in self.removed):
            pass
        self._free()
        return True

    def _strings(self, node: schema.NodeDef, position: int) -> set[str]:
        constant = (
            self.nodes.get(self.source(node.input[position])[0])
            if position < len(node.input)
            else None
        )
        return set() if constant is None or constant.op != "Const" else set(_texts(constant))

    def _kept(self, node: schema.NodeDef) -> Optional[list[int]]:
        """Which of the keys of a saver's op stay; None if all do.

        The lists of keys and slices become shorter.
        """
        constants = [self.nodes.get(self.source(text)[0]) for text in node.input[1:3]]
        if len(constants) != 2 or any(item is None or item.op != "Const" for item in constants):
            raise self.work.refuse("which keys it means is computed when it runs", node.name)
        names = _texts(constants[0])
        kept = [index for index, name in enumerate(names) if name not in self.work.keys]
        if len(kept) == len(names):
            return None
        data = sum(not text.startswith("^") for text in node.input)
        lengths = {len(names), len(_texts(constants[1])), len(node.attr["dtypes"].list.type)}
        if len(lengths) > 1 or data != 3 + len(names) * (node.op == "SaveV2"):
            raise self.work.refuse(
                "its keys, slices, types and values are not of one number", node.name
            )
        for item in constants:
            assert item is not None
            if self.lists.get(item.name, kept) != kept:
                raise self.work.refuse(
                    "two ops share one list of keys and need different ones", item.name
                )
            users = sum(self.source(text)[0] == item.name for text in _inputs(self.all))
            if users > 1 and item.name not in self.lists:
                raise self.work.refuse("the list of keys has another user", item.name)
            if item.name not in self.lists:
                _shorten(item, kept)
            self.lists[item.name] = kept
        return kept

    def _restore(self, node: schema.NodeDef) -> None:
        kept = self._kept(node)
        if kept is None:
            return
        count = len(node.attr["dtypes"].list.type)
        port = f"{node.name}:tensors:{{}}" if self.function is not None else f"{node.name}:{{}}"
        new = {
            port.format(index): port.format(kept.index(index)) if index in kept else _DEAD
            for index in range(count)
        }
        for other in self.all:
            for position, text in enumerate(other.input):
                plain = f"{text}:0" if text == node.name else text
                if plain in new:
                    other.input[position] = new[plain]
        if self.function is not None and set(self.function.ret.values()) & new.keys():
            raise self.work.refuse("the function returns what it restores", node.name)
        self._lists(node, kept)
        if not kept:
            self.removed.add(node.name)
            self.freed += [self.source(text)[0] for text in node.input]

    def _lists(self, node: schema.NodeDef, kept: list[int]) -> None:
        types = node.attr["dtypes"].list.type
        count = len(types)
        types[:] = [types[index] for index in kept]
        known = (
            "_output_shapes" in node.attr and len(node.attr["_output_shapes"].list.shape) == count
        )
        if node.op == "RestoreV2" and known:
            shapes = [node.attr["_output_shapes"].list.shape[index] for index in kept]
            copy = schema.AttrValue()
            copy.list.shape.extend(shapes)
            node.attr["_output_shapes"].CopyFrom(copy)

    def _save(self, node: schema.NodeDef) -> None:
        kept = self._kept(node)
        if kept is None:
            return
        data = [position for position, text in enumerate(node.input) if not text.startswith("^")][
            3:
        ]
        gone = [position for index, position in enumerate(data) if index not in kept]
        self.freed += [self.source(node.input[position])[0] for position in gone]
        for position in reversed(gone):
            del node.input[position]
        self._lists(node, kept)
        if not kept:
            raise self.work.refuse("nothing would be left to save", node.name)

    def _consume(self, node: schema.NodeDef) -> bool:
        """Remove a node that takes a tensor which is not restored any more.

        Raises RefusedError: it does more than that.
        """
        data = [text for text in node.input if not text.startswith("^")]
        taken = [index for index, text in enumerate(data) if self._is_dead(text)]
        if not taken:
            return False
        known = taken == [0] if node.op in _PASSING else taken == [1] and node.op in _SINKS
        if not known:
            raise self.work.refuse(
                f"{node.op} takes what would not be restored any more", node.name
            )
        self.removed.add(node.name)
        self.freed += [self.source(text)[0] for text in data]
        return True

    def _is_dead(self, text: str) -> bool:
        return text == _DEAD or self.source(text)[0] in self.removed

    def _free(self) -> None:
        """Remove what only read the values that are not saved any more.

        In a main graph reachability does that.
        """
        if self.function is None:
            return
        returned = {self.source(text)[0] for text in self.function.ret.values()}
        if returned & self.removed:
            raise self.work.refuse("the function returns it", min(returned & self.removed))
        while self.freed:
            node = self.nodes.get(self.freed.pop())
            if (
                node is None
                or node.name in self.removed
                or node.name in returned
                or node.op not in _READING
            ):
                continue
            if node.op != "DisableCopyOnRead" and self._users(node.name):
                continue
            if node.op == "DisableCopyOnRead" and self._others(node):
                continue
            self.removed.add(node.name)
            self.freed += [parse_input(text.lstrip("^"), True).source for text in node.input]

    def _users(self, name: str) -> bool:
        kept = (node for node in self.scope if node.name not in self.removed)
        edges = (parse_input(text, True) for text in _inputs(kept))
        return any(edge.source == name and edge.port != CONTROL for edge in edges)

    def _others(self, node: schema.NodeDef) -> bool:
        """Does anything else use the handle?"""
        handle = node.input[0]
        return any(
            handle in other.input
            for other in self.scope
            if other.name not in self.removed and other.name != node.name
        )

    def delete(self, nodes: Any) -> None:
        """Take the marked nodes out, with the control edges to them, and arguments that nobody
        needs any more.
        """
        function = self.function
        if function is None:
            control = {f"^{name}" for name in self.removed}
            for node in nodes:
                if control.intersection(node.input):
                    node.input[:] = [text for text in node.input if text not in control]
            keep_only(nodes, lambda node: node.name not in self.removed)
            return
        remove_nodes(function, self.removed)
        after = {*_inputs(function.node_def), *function.ret.values()}
        arguments = [item.name for item in function.signature.input_arg]
        gone = [
            index
            for index, name in enumerate(arguments)
            if name in self.before and name not in after
        ]
        if gone:
            select_arguments(
                function, [index for index in range(len(arguments)) if index not in gone]
            )
            self.work.shorten(function.signature.name, gone)


def _texts(node: Optional[schema.NodeDef]) -> list[str]:
    """Return the strings of a constant. Raises LimitError."""
    return [value.decode("utf-8", "replace") for value in _strings(node)]


def _strings(node: Optional[schema.NodeDef]) -> list[bytes]:
    values = strings_of_constant(node, limits.SAVER_NAMES + 1)
    if len(values) > limits.SAVER_NAMES:
        where = "" if node is None else node.name
        reason = f"a constant of more than {limits.SAVER_NAMES} names"
        raise LimitError(reason, node=where, limit="SAVER_NAMES")
    return values


def _shorten(node: schema.NodeDef, kept: Iterable[int]) -> None:
    """Keep some of the strings of a constant."""
    values = _strings(node)
    chosen = [values[index] for index in kept]
    node.attr["value"].tensor.CopyFrom(string_tensor(chosen))
    if "_output_shapes" in node.attr and len(node.attr["_output_shapes"].list.shape) == 1 == len(
        node.attr["_output_shapes"].list.shape[0].dim
    ):
        node.attr["_output_shapes"].list.shape[0].dim[0].size = len(chosen)


def _inputs(nodes: Iterable[schema.NodeDef]) -> Iterator[str]:
    return itertools.chain.from_iterable(node.input for node in nodes)


def _moved(index: int, gone: Sequence[int]) -> int:
    """Return the new place of an input, when others are taken out."""
    return index - sum(one < index for one in gone)
