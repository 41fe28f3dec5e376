"""Which objects of an object graph are optimizers, and which variables of a TF 1.x graph are the
state of one.

The names of attributes prove nothing: a module of any user may have `_variables`, `iterations` and
`learning_rate`. Evidence is what only optimizers have in the file: slot variables, the type that
Keras 2 registers, the note of this project's writer. An optimizer of Keras 3 has none of these. It
is recognised by how its variables are wired, and by a weight that it trains. In TF 1.x the ops that
apply gradients take the state beside the variable that they train.
"""

from __future__ import annotations

import itertools
import re
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import LIST
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.variable_defs import VARIABLE_OPS
from reference_impl.views.text import dtype_name
from savedmodel_tools.edits.objects import Objects
from savedmodel_tools.verify.assignments import Assignments

_IDENTIFIERS = frozenset({"optimizer", "experimentalOptimizer"})
_VARIABLES, _ITERATIONS, _RATE = (
    ("_variables",),
    ("_iterations", "iterations"),
    ("_learning_rate", "learning_rate"),
)
_WRITES = (
    "Assign",
    "ResourceApply",
    "ResourceSparseApply",
    "ResourceScatter",
)  # beginnings of ops that change a variable
_APPLY = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
_READS = frozenset({"Identity", "ReadVariableOp"})


def recognise(
    objects: Objects, library: schema.FunctionDefLibrary
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the optimizers by node number with the evidence, and what only has the attributes of
    one with what is missing.

    ``library``: the functions of the MetaGraph, which show what a training step changes.
    """
    noted = (
        {item.node_id for item in objects.extension.optimizers}
        if objects.extension is not None
        else set()
    )
    found: dict[int, str] = {}
    doubtful: dict[int, str] = {}
    wiring = _Wiring(objects.saved, library)
    for number, node in enumerate(objects.saved.nodes):
        if number == 0 or node.WhichOneof("kind") != "user_object":
            continue
        if node.slot_variables:
            found[number] = f"{len(node.slot_variables)} slot variables"
        elif node.user_object.identifier in _IDENTIFIERS:
            found[number] = f"of the type {node.user_object.identifier}"
        elif number in noted:
            found[number] = "noted by its writer"
        elif wiring.has_attributes(number):
            missing = wiring.missing(number)
            if missing is None:
                found[number] = "with an iteration, a learning rate and the weights that it trains"
            else:
                doubtful[number] = missing
    return found, doubtful


class _Wiring:
    """How the variables of objects hang together."""

    def __init__(self, saved: schema.SavedObjectGraph, library: schema.FunctionDefLibrary) -> None:
        self._saved, self._proto = saved, library
        self._library: Optional[FunctionIndex] = None
        self._assignments: Optional[Assignments] = None

    def has_attributes(self, number: int) -> bool:
        """Whether an object has the attributes that every optimizer of Keras 3 has."""
        return all(
            self._child(number, names) is not None for names in (_VARIABLES, _ITERATIONS, _RATE)
        )

    def missing(self, number: int) -> Optional[str]:
        """Return what an object with these attributes lacks to be an optimizer; None if it is
        one.
        """
        members = self._members(self._child(number, _VARIABLES))
        counter, rate = self._child(number, _ITERATIONS), self._child(number, _RATE)
        if members is None or members[:2] != [counter, rate]:
            return "its list of variables does not begin with the iteration and the learning rate"
        if not self._is_scalar(counter, "int", "uint") or not self._is_scalar(
            rate, "float", "bfloat"
        ):
            return (
                "the iteration is not an integer, or the learning rate is not a floating-point"
                " number"
            )
        others = self._weights_without(number)
        if self._lists_weights(number, set(members), others) or self._step_changes(
            set(members), others
        ):
            return None
        return (
            "it lists no weights of the model, and no function changes its variables together with"
            " weights of the model"
        )

    def _child(self, number: int, names: tuple[str, ...]) -> Optional[int]:
        found = [
            child.node_id
            for child in self._saved.nodes[number].children
            if child.local_name in names
        ]
        return found[0] if found else None

    def _members(self, number: Optional[int]) -> Optional[list[int]]:
        """The variables of a list, in order; None if it is not a list of variables."""
        node = None if number is None else self._saved.nodes[number]
        if node is None or node.user_object.identifier != LIST:
            return None
        items = {child.local_name: child.node_id for child in node.children}
        members = [items.get(str(position), 0) for position in range(len(items))]
        return (
            members
            if all(self._saved.nodes[member].HasField("variable") for member in members)
            else None
        )

    def _is_scalar(self, number: Optional[int], *names: str) -> bool:
        """Whether an object is a variable without dimensions whose type's name begins so."""
        variable = self._saved.nodes[number or 0].variable
        unknown = variable.shape.unknown_rank
        return (
            dtype_name(variable.dtype).startswith(names) and not variable.shape.dim and not unknown
        )

    def _weights_without(self, number: int) -> set[int]:
        """Trainable variables that the root leads to without an object."""
        nodes = self._saved.nodes
        seen = reachable(
            [0], lambda item: [child.node_id for child in nodes[item].children], {number: None}
        )
        return {item for item in seen if self._saved.nodes[item].variable.trainable}

    def _lists_weights(self, number: int, state: set[int], weights: set[int]) -> bool:
        """Whether a list of the object holds weights of the model and nothing else."""
        lists = [self._members(child.node_id) for child in self._saved.nodes[number].children]
        return any(
            members and weights.issuperset(members) and state.isdisjoint(members)
            for members in lists
        )

    def _step_changes(self, state: set[int], weights: set[int]) -> bool:
        """Whether a function changes variables of the object and weights of the model: a training
        step.
        """
        for name, function in self._saved.concrete_functions.items():
            if state.isdisjoint(function.bound_inputs) or weights.isdisjoint(function.bound_inputs):
                continue
            changed = self._changed(name, list(function.bound_inputs))
            if state & changed and weights & changed:
                return True
        return False

    def _changed(self, name: str, captures: list[int]) -> set[int]:
        """The captured variables that a function changes, also by what it calls.

        Captures are its last arguments.
        """
        if self._library is None or self._assignments is None:
            self._library = FunctionIndex(self._proto)
            bodies = (function.node_def for function in self._library.functions.values())
            ops = {node.op for node in itertools.chain.from_iterable(bodies)}
            writes = frozenset(op for op in ops if op.startswith(_WRITES))
            self._assignments = Assignments(self._library, {}, writes)
        if name not in self._library.functions:
            return set()
        first = len(self._library.functions[name].signature.input_arg) - len(captures)
        return {
            captures[index - first]
            for index in self._assignments.assigned_arguments(name)
            if index >= first >= 0
        }


def optimizer_state(graph: schema.MetaGraphDef) -> set[str]:
    """Nodes of variables that training ops of the main graph read or change, and no training op
    trains: slots, powers of beta.
    """
    nodes = {node.name: node for node in graph.graph_def.node}
    trained: set[str] = set()
    state: set[str] = set()
    for node in nodes.values():
        if not _APPLY.match(node.op):
            continue
        for position, text in enumerate(data_inputs(node)):
            found = _variable(nodes, text)
            if found:
                (state if position else trained).add(found)
    return state - trained


def _variable(nodes: dict[str, schema.NodeDef], text: str) -> str:
    """The variable that a tensor is, or is read from; empty for anything else."""
    for _ in range(len(nodes)):
        node = nodes.get(parse_input(text).source)
        if node is None:
            return ""
        if node.op in VARIABLE_OPS:
            return str(node.name)
        inputs = data_inputs(node)
        if node.op not in _READS or len(inputs) != 1:
            return ""
        text = inputs[0]
    return ""
