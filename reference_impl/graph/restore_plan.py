"""Pair checkpoint keys with variables by following the restore op of a SaverDef without running it.

TF 1.x builds ``RestoreV2 -> (Identity) -> Assign`` in the main graph. TF 2.x builds a call of a
function (``__inference__traced_restore``) that holds the same ops, nested calls for tables
included; a resource that the function assigns is one of its arguments, so it is traced back through
the call to the node of the main graph that made it.

A TF 1.x MetaGraph without a SaverDef (a module of TensorFlow Hub's first format) is restored as a
tf.train.Saver of its global variables would do: by name; a partitioned variable gets its part.

RFC: FMT-06, RP-08, V1-08
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.values import dtypes
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import CONTROL, Edge, data_inputs, input_source, parse_input
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.node_defs import strings_of_constant
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.variable_defs import (
    COLLECTIONS,
    GLOBAL,
    REFERENCE_OPS,
    VARIABLE_OPS,
    slice_spec,
    variable_defs,
)

_RESTORE_OPS = frozenset({"RestoreV2", "Restore", "RestoreSlice"})
_PASS_THROUGH = frozenset(
    {"Identity", "IdentityN", "Reshape", "Cast", "EnsureShape", "Snapshot", "StopGradient"}
)


class Restored(NamedTuple):
    """One tensor of the checkpoint on its way into the graph."""

    key: str
    # the part of the stored tensor that is read, in RestoreV2's notation (``"10 3 0,5:-"``); empty
    # for all of it
    slice: str
    dtype: str
    # of the main graph, which holds the state: a variable, its handle, a table, or a call that
    # makes one of these
    node: str
    op: str  # of that node
    by: str  # the op that takes the value: Assign, AssignVariableOp, LookupTableImportV2, …
    fetch: Optional[str]  # a tensor of the main graph that gives a session the variable's value


class _Frame(NamedTuple):
    """A body being followed: the main graph, or a function at one of its calls."""

    nodes: dict[str, schema.NodeDef]
    function: Optional[schema.FunctionDef] = None
    caller: Optional[_Frame] = None
    inputs: Sequence[str] = ()
    arguments: Mapping[str, int] = {}
    depth: int = 0

    def edge(self, text: str) -> Edge:
        return parse_input(text, self.function is not None)


_Origin = tuple[_Frame, schema.NodeDef, int]  # a node and which of its outputs


def restore_plan(
    meta_graph: schema.MetaGraphDef, file: str = "", view: Optional[GraphView] = None
) -> list[Restored]:
    """Follow the restore op of ``meta_graph``; without a SaverDef and an object graph, name its
    global variables.

    Returns:
      One entry per tensor that is read and assigned, in the order of the graph; empty when nothing
      is restored. Entries whose key or target is computed at run time are left out.

    Raises:
      LimitError: the functions that restore nest too deeply or are too many to follow.
    """
    view = view or GraphView(meta_graph)
    if meta_graph.saver_def.restore_op_name:
        return _Walk(view, file).plan()
    if meta_graph.HasField("saver_def") or meta_graph.HasField("object_graph_def"):
        return []
    return _by_name(meta_graph, file, view.main)


def _by_name(meta_graph: schema.MetaGraphDef, file: str, main: Nodes) -> list[Restored]:
    """Return the tensors that a tf.train.Saver would restore: of global variables, or of all if no
    collection lists them.
    """
    nodes = {
        name: node
        for name, op, node in zip(main.names, main.ops, main.messages)
        if op in VARIABLE_OPS
    }
    listed = {node: definition for _, node, definition in variable_defs(meta_graph, [GLOBAL], file)}
    reads = _reads(main)
    plan = []
    for name in (
        nodes if not any(key in meta_graph.collection_def for key in COLLECTIONS) else listed
    ):
        if name not in nodes:
            continue
        node, part = nodes[name], listed.get(name, schema.VariableDef()).save_slice_info_def
        key, spec = (part.full_name, slice_spec(part)) if part.full_name else (name, "")
        by, fetch = (
            ("Assign", f"{name}:0")
            if node.op in REFERENCE_OPS
            else ("AssignVariableOp", reads.get(name))
        )
        # Reading a missing attribute would add it.
        dtype = dtypes.by_number(node.attr["dtype"].type if "dtype" in node.attr else 0)
        plan.append(Restored(key, spec, dtype.name, name, node.op, by, fetch))
    return plan


def _reads(main: Nodes) -> dict[str, str]:
    """Return handle -> a tensor with the variable's value that has no other dependencies."""
    reads: dict[str, str] = {}
    for name, op, node in zip(main.names, main.ops, main.messages):
        if op == "ReadVariableOp" and len(node.input) == 1:
            reads.setdefault(input_source(node.input[0]), f"{name}:0")
    return reads


class _Walk:
    def __init__(self, view: GraphView, file: str):
        self.file = file
        self.view, self.library = view, view.library
        self.main = _Frame(view.main.by_name)
        self.steps = 0
        self.reads = _reads(view.main)
        # The nodes by name, the arguments by name, and the number of nodes of a function that is
        # called.
        self.bodies: dict[str, tuple[dict[str, schema.NodeDef], dict[str, int], int]] = {}
        # The keys, slices and dtypes of a restore op. The frame is kept alive since its id is the
        # key.
        self.asked: dict[tuple[int, str], tuple[_Frame, list[str], list[str], list[int]]] = {}

    def plan(self) -> list[Restored]:
        found: dict[Restored, None] = {}
        start = input_source(self.view.proto.saver_def.restore_op_name)
        needed = reachable([start], self.view.main.waits)
        frames = [(self.main, [node for name, node in self.main.nodes.items() if name in needed])]
        while frames:
            frame, nodes = frames.pop()
            for node in nodes:
                self._step(node.name)
                called = self.library.called(node)
                if called is not None:
                    inner = self._enter(frame, node, called)
                    frames.append((inner, list(inner.nodes.values())))
                elif node.op not in _PASS_THROUGH and node.op not in _RESTORE_OPS:
                    found.update(dict.fromkeys(self._assigned(frame, node)))
        return list(found)

    def _step(self, where: str) -> None:
        self.steps += 1
        if self.steps > limits.RESTORE_STEPS:
            raise errors.LimitError(
                "too many nodes to follow what is restored",
                file=self.file,
                node=where,
                limit="RESTORE_STEPS",
            )

    def _enter(self, frame: _Frame, node: schema.NodeDef, called: str) -> _Frame:
        if frame.depth == limits.RESTORE_CALL_DEPTH:
            reason = "calls nest too deeply to follow what is restored"
            raise errors.LimitError(reason, file=self.file, node=called, limit="RESTORE_CALL_DEPTH")
        function = self.library.functions[called]
        if called not in self.bodies:
            arguments = {
                argument.name: index for index, argument in enumerate(function.signature.input_arg)
            }
            self.bodies[called] = (
                {inner.name: inner for inner in function.node_def},
                arguments,
                len(function.node_def),
            )
        nodes, arguments, size = self.bodies[called]
        self.steps += size
        return _Frame(nodes, function, frame, data_inputs(node), arguments, frame.depth + 1)

    def _assigned(self, frame: _Frame, node: schema.NodeDef) -> Iterator[Restored]:
        """Yield the tensors that ``node`` takes from the checkpoint: the target is its first input,
        a restored tensor another.
        """
        inputs = data_inputs(node)
        holder: Optional[schema.NodeDef] = None
        for text in inputs[1:]:
            value = self._origin(frame, text)
            if value is None or value[1].op not in _RESTORE_OPS:
                continue
            holder = holder or self._holder(frame, inputs[0])
            read = self._read(value)
            if holder is not None and read is not None:
                fetch = (
                    f"{holder.name}:0"
                    if holder.op in REFERENCE_OPS
                    else self.reads.get(holder.name)
                )
                yield Restored(*read, holder.name, holder.op, node.op, fetch)

    def _holder(self, frame: _Frame, text: str) -> Optional[schema.NodeDef]:
        """Return the node of the main graph that made a handle, or the call of the function that
        made it.
        """
        passed: list[schema.NodeDef] = []
        return passed[-1] if self._origin(frame, text, passed) is not None and passed else None

    def _origin(
        self, frame: _Frame, text: str, passed: Optional[list[schema.NodeDef]] = None
    ) -> Optional[_Origin]:
        """Walk a tensor back through identities, arguments and results of calls to the node that
        made it.

        `passed` collects the nodes of the main graph on the way.
        """
        edge = frame.edge(text)
        while edge.port != CONTROL:
            self._step(edge.source)
            if frame.caller is not None and edge.source in frame.arguments:
                index = frame.arguments[edge.source]
                if index >= len(frame.inputs):
                    return None
                text, frame = frame.inputs[index], frame.caller
                edge = frame.edge(text)
                continue
            node = frame.nodes.get(edge.source)
            if node is None:
                return None
            if passed is not None and frame is self.main:
                passed.append(node)
            index = edge.number or 0
            called = self.library.called(node)
            if called is not None:
                frame = self._enter(frame, node, called)
                result = _result(frame.function, node.op == called, edge.port, index)
                if result is None:
                    return None
                edge = frame.edge(result)
            elif node.op in _PASS_THROUGH:
                inputs = data_inputs(node)
                index = index if node.op == "IdentityN" else 0
                if index >= len(inputs):
                    return None
                edge = frame.edge(inputs[index])
            else:
                return frame, node, index
        return None

    def _read(self, value: _Origin) -> Optional[tuple[str, str, str]]:
        """Return key, slice and dtype of one output of a restore op."""
        frame, node, index = value
        if (id(frame), node.name) not in self.asked:  # one op often restores everything
            inputs = data_inputs(node)
            types = (
                list(node.attr["dtypes"].list.type)
                if "dtypes" in node.attr
                else [node.attr["dt"].type]
            )
            keys, slices = (
                [self._strings(frame, text, len(types)) for text in inputs[1:3]] + [[], []]
            )[:2]
            self.asked[id(frame), node.name] = frame, keys, slices, types
        _, keys, slices, types = self.asked[id(frame), node.name]
        if index >= len(keys) or index >= len(types):
            return None
        part = slices[index] if index < len(slices) else ""
        return keys[index], part, dtypes.by_number(types[index]).name

    def _strings(self, frame: _Frame, text: str, most: int) -> list[str]:
        origin = self._origin(frame, text)
        values = [] if origin is None else strings_of_constant(origin[1], most)
        return [value.decode("utf-8", "backslashreplace") for value in values]


def _result(
    function: Optional[schema.FunctionDef], by_name: bool, port: str, index: int
) -> Optional[str]:
    """Return the tensor in ``function`` that is output ``index``; a call by op type names outputs
    as the function does.
    """
    if function is None:
        return None
    outputs = [argument.name for argument in function.signature.output_arg]
    name = (
        port.partition(":")[0]
        if by_name and ":" in port
        else outputs[index]
        if index < len(outputs)
        else ""
    )
    return function.ret.get(name)
