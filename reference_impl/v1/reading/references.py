"""Convert reference variables and tables with string handles to resources.

In TF 1.x the output of ``VariableV2`` is a *reference*: every consumer sees the buffer itself and
reads it when it runs, and updates pass the reference on. Functions, gradients and TF 2 checkpoints
know only resource handles. The rewrite keeps the name of every node and the time at which it runs:

* ``VariableV2``, ``Variable`` become ``VarHandleOp``;
* an update (``Assign``, ``AssignAdd``, ``Scatter*``, ``Apply*``, …) becomes its resource form, and
  users of the reference that it put out use the variable's handle, after the update;
* a node that used a reference as a value gets a ``ReadVariableOp`` of its own that runs after all
  the node's other inputs, as the implicit read did. ``Identity`` of a reference becomes the read
  itself;
* ``RefSwitch``, ``RefMerge``, ``RefEnter``, ``RefExit``, ``RefNextIteration``, ``RefIdentity``
  carry the handle.

Tables, queues and readers with string handles have resource twins with the suffix ``V2`` and equal
attrs. An op without a resource twin is not changed.

RFC: V1-03, V1-10, V1-17
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import Edge, input_source, parse_input
from reference_impl.graph.node_defs import add_controls, clear_op_attributes
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.graph.variable_defs import REFERENCE_OPS

# Updates whose resource form is not simply "Resource" + op.
_RENAMED_UPDATES = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
}
_PREFIXED_UPDATES = ("Apply", "SparseApply", "Scatter", "StridedSliceAssign")
_FLOW = {
    "RefSwitch": "Switch",
    "RefMerge": "Merge",
    "RefEnter": "Enter",
    "RefExit": "Exit",
    "RefNextIteration": "NextIteration",
    "RefIdentity": "Identity",
}
_PASSING = frozenset(_FLOW.values())

_TABLES = {"HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable"}
_QUEUES = {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"}
_READERS = {
    "FixedLengthRecordReader",
    "IdentityReader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
}
STRING_HANDLES = _TABLES | _QUEUES | _READERS
_HANDLE_USERS = ("LookupTable", "Queue", "Reader")
_TABLE_INITIALIZERS = {"InitializeTable", "InitializeTableFromTextFile"}


class VariableReference(NamedTuple):
    """The meaning of a reference: the handle, the update after which it has to be read (or ""), the
    variable.
    """

    handle: Edge
    after: str
    variable: str


class RewrittenReferences:
    """The result of the rewrite."""

    def __init__(self, graph: Graph, aliases: dict[Edge, VariableReference]):
        self._graph = graph
        self._aliases = aliases
        self._reads: dict[Edge, Edge] = {}

    def value(self, ref: Edge) -> Edge:
        """Return the tensor to fetch instead of ``ref``: for a reference, a read of the variable,
        added on first use.
        """
        alias = self._aliases.get(ref)
        if alias is None:
            return ref
        if ref not in self._reads:
            self._reads[ref] = Edge(
                _add_read(self._graph, f"{ref.source}/ReadVariableOp", alias, [])
            )
        return self._reads[ref]


def rewrite_references(graph: Graph, ops: OpTable, fetched: Iterable[Edge]) -> RewrittenReferences:
    """RewrittenReferences ``graph`` in place.

    See the module's docstring.

    Args:
      graph, ops: the main graph, and the descriptions of its ops.
      fetched: tensors that signatures fetch. A variable that is updated on the way to one of them
        is also read again by each consumer of its ``Identity``, since the buffer that Identity
        handed out was the variable's own.
    """
    _rewrite_handles(graph)
    if not any(node.op in REFERENCE_OPS for node in graph):
        return RewrittenReferences(graph, {})
    finder = _References(graph, _updated_variables(graph, fetched))
    original = list(graph)
    # References are followed through the original ops, so all are resolved before any op is
    # renamed.
    plan = [(node, finder.of_inputs(node)) for node in original]
    outputs: list[Edge] = []
    for node in original:
        count = 2 if node.op == "RefSwitch" else 1
        outputs += [Edge(node.name, str(index)) for index in range(count)]
    aliases = {ref: alias for ref in outputs if (alias := finder.of(ref)) is not None}
    for node, inputs in plan:
        if node.op in REFERENCE_OPS:
            _to_handle(node)
        elif any(inputs):
            _rewrite_node(graph, ops, node, inputs)
    return RewrittenReferences(graph, aliases)


def _updated_variables(graph: Graph, fetched: Iterable[Edge]) -> frozenset[str]:
    """Return the names of the variables that are updated on the way to the fetched tensors."""
    finder = _References(graph, frozenset())
    sound = {node.name: node for node in graph}
    # The function that needs an edge which leads nowhere reports it.
    needed = reachable(
        [ref.source for ref in fetched],
        lambda name: map(input_source, sound[name].input if name in sound else ()),
    )
    updates = [
        sound[name]
        for name in needed
        if name in sound and resource_form(sound[name].op) is not None
    ]
    aliases = itertools.chain.from_iterable(map(finder.of_inputs, updates))
    return frozenset(alias.variable for alias in aliases if alias is not None)


class _References:
    """Follows references back to their handle, without recursion.

    ``Identity`` passes on variables in ``through_identity``.
    """

    def __init__(self, graph: Graph, through_identity: frozenset[str]):
        self._graph = graph
        self._through_identity = through_identity
        self._known: dict[Edge, VariableReference | None] = {}

    def of_inputs(self, node: schema.NodeDef) -> list[VariableReference | None]:
        """Return the meaning of each input of a node."""
        return [self.of(parse_input(text)) for text in node.input]

    def of(self, ref: Edge) -> VariableReference | None:
        """Return the meaning of a tensor that is a reference to a variable, or None for other
        tensors.
        """
        path: dict[Edge, None] = {}
        found: VariableReference | None = None
        while True:
            if ref.is_control or ref.source not in self._graph:
                break
            if ref in self._known:
                found = self._known[ref]
                break
            node = self._graph.nodes[ref.source]
            if node.op in REFERENCE_OPS:
                found = VariableReference(Edge(node.name), "", node.name)
                break
            passes = resource_form(node.op) is not None or node.op in _FLOW or node.op == "Identity"
            value_output = node.op == "CountUpTo" or (node.op == "RefMerge" and ref.port == "1")
            if not passes or value_output or not node.input or ref in path:
                break
            path[ref] = None
            ref = parse_input(node.input[0])
        # Walk the path back: flow ops carry the handle themselves, updates hand on their input's.
        for step in reversed(list(path)):
            node = self._graph.nodes[step.source]
            if (
                found is not None
                and node.op == "Identity"
                and found.variable not in self._through_identity
            ):
                found = None
            elif found is not None:
                found = (
                    VariableReference(step, "", found.variable)
                    if node.op in _FLOW
                    else VariableReference(found.handle, node.name, found.variable)
                )
            self._known[step] = found
        return found


def resource_form(op: str) -> str | None:
    """Return the resource twin of an op that updates a reference variable, or None for other
    ops.
    """
    if op in _RENAMED_UPDATES:
        return _RENAMED_UPDATES[op]
    if op == "CountUpTo" or (
        op.startswith(_PREFIXED_UPDATES) and op not in ("ScatterNd", "ScatterNdNonAliasingAdd")
    ):
        return "Resource" + op
    return None


def _rewrite_node(
    graph: Graph, ops: OpTable, node: schema.NodeDef, inputs: list[VariableReference | None]
) -> None:
    twin = resource_form(node.op)
    if twin is not None:
        definition = ops.registered(twin)  # a variable and, for an optimizer, its slots are inputs
        handles = (
            1
            if definition is None
            else sum(item.type == schema.DT_RESOURCE for item in definition.input_arg)
        )
        handles = min(handles, len(inputs))
        dtype = node.attr["T"].type
        for position in range(handles):
            if inputs[position] is None:
                raise errors.MalformedError(
                    f"input {position} of {node.op} must be a reference to a variable",
                    file=graph.file,
                    node=node.name,
                )
        _use_handles(graph, node, inputs, handles)
        _set_update_op(node, twin, dtype)
    elif node.op == "IsVariableInitialized":
        _use_handles(graph, node, inputs, 1)
        node.op = "VarIsInitializedOp"
        node.attr.pop("dtype", None)
    elif node.op in _FLOW:
        _use_handles(graph, node, inputs, len(inputs))
        node.op = _FLOW[node.op]
        node.attr["T"].type = schema.DT_RESOURCE
        _forget_shape(node)
    elif node.op == "Identity" and inputs[0] is not None:
        _use_handles(graph, node, inputs, 1)
        dtype = node.attr["T"].type
        node.op = "ReadVariableOp"
        clear_op_attributes(node)
        node.attr["dtype"].type = dtype
    elif not node.op.startswith("Ref") and node.op not in (
        "DestroyTemporaryVariable",
        "NegTrain",
        "SdcaShrinkL1",
    ):
        _read_inputs(graph, node, inputs)


def _use_handles(
    graph: Graph, node: schema.NodeDef, inputs: list[VariableReference | None], count: int
) -> None:
    """Replace the first ``count`` inputs by handles, run after the update that produced the
    reference; read the others.
    """
    texts = list(node.input)
    after: list[str] = []
    for position, alias in enumerate(inputs[:count]):
        if alias is not None:
            texts[position] = alias.handle.text
            if alias.after:
                after.append(alias.after)
    node.input[:] = texts
    add_controls(node, after)
    if any(inputs[count:]):
        _read_inputs(graph, node, [*[None] * count, *inputs[count:]])


def _read_inputs(
    graph: Graph, node: schema.NodeDef, inputs: list[VariableReference | None]
) -> None:
    """Give a node a read of each variable that it used as a value."""
    texts = list(node.input)
    controls = [text[1:] for text in texts if text.startswith("^")]
    waits: list[Edge] = []
    # A Merge runs with one input alive and may close a loop, so it waits for none of its inputs.
    if node.op not in ("Merge", "RefMerge"):
        # The reference was read when the node ran, so after every update among its own inputs,
        controls = [alias.after for alias in inputs if alias is not None and alias.after] + controls
        # and after all its data: what computes an input may wait for an update.
        others = [
            parse_input(text)
            for text, alias in zip(texts, inputs)
            if alias is None and not text.startswith("^")
        ]
        for ref in others:
            waits += _before(graph, ref)
    for position, alias in enumerate(inputs):
        if alias is not None:
            texts[position] = _add_read(graph, f"{node.name}/ReadVariableOp", alias, controls)
            graph.waits[texts[position]] = waits
    node.input[:] = texts


def _before(graph: Graph, ref: Edge) -> list[Edge]:
    """Return the tensors that a read waits for instead of ``ref``.

    A control edge from a Switch would not tell the branch.
    """
    for _ in range(limits.SWITCHES_IN_SEQUENCE):
        node = graph.nodes.get(ref.source)
        if node is None or not node.input:  # a constant or placeholder is always available
            return []
        if node.op not in ("Switch", "RefSwitch"):
            break
        ref = parse_input(node.input[0])
    return [ref]


def _add_read(graph: Graph, name: str, alias: VariableReference, controls: list[str]) -> str:
    """Add a read of a variable; return the name of the node."""
    variable = graph.nodes[alias.variable]
    read = graph.node(name, "ReadVariableOp", [alias.handle.text])
    read.device = variable.device
    add_controls(read, [alias.after, *controls] if alias.after else controls)
    read.attr["dtype"].type = variable.attr["dtype"].type
    return str(read.name)


def _to_handle(node: schema.NodeDef) -> None:
    shape = node.attr["shape"].shape
    if node.op == "Variable" and not shape.dim:
        shape.unknown_rank = True  # the oldest op: an empty shape meant "not known"
    node.op = "VarHandleOp"
    _forget_shape(node)


def _forget_shape(node: schema.NodeDef) -> None:
    """Remove the recorded shape, which described the value or a string handle.

    A resource handle is a scalar.
    """
    node.attr.pop("_output_shapes", None)


def _set_update_op(node: schema.NodeDef, twin: str, dtype: int) -> None:
    node.op = twin
    _forget_shape(node)
    if twin in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"):
        clear_op_attributes(node)
        node.attr["dtype"].type = dtype
    elif twin.startswith("ResourceScatter") and not twin.startswith("ResourceScatterNd"):
        indices = node.attr["Tindices"].type
        clear_op_attributes(node)
        node.attr["dtype"].type = dtype
        node.attr["Tindices"].type = indices


def _rewrite_handles(graph: Graph) -> None:
    """Convert string handles of tables, queues and readers to resource handles, along every op that
    only passes them on.
    """
    makers = [node for node in graph if node.op in STRING_HANDLES]
    users: dict[Edge, list[Any]] = {}
    for node in graph if makers else ():
        if node.input:
            users.setdefault(parse_input(node.input[0]), []).append(node)
    for node in makers:
        node.op += "V2"
        _forget_shape(node)

    def passed(handle: Edge) -> Iterator[Edge]:
        for user in users.get(handle, ()):
            if user.op in _TABLE_INITIALIZERS or (
                user.op.startswith(_HANDLE_USERS) and not user.op.endswith("V2")
            ):
                user.op += "V2"
            elif user.op in _FLOW or user.op in _PASSING:
                user.op = _FLOW.get(user.op, user.op)
                user.attr["T"].type = schema.DT_RESOURCE
                _forget_shape(user)
                yield Edge(user.name)
                if user.op == "Switch":
                    yield Edge(user.name, "1")

    reachable([Edge(node.name) for node in makers], passed)
