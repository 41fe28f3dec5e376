"""Convert the TF 1.x control flow in a function to While and If.

TensorFlow runs either form, but gradients, XLA and most readers of an export know only the second.
A graph that was not provably made by tf.while_loop and tf.cond keeps its form, and an attribute
names the node that prevented the conversion.

RFC: V1-11, V1-14
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.names import V1_CONTROL_FLOW, V1_TENSOR_ARRAY
from reference_impl.graph.op_table import V1_FLOW, OpTable, has_v1_flow
from reference_impl.v1.reading.control_flow import stages
from reference_impl.v1.reading.control_flow.conditionals import Conditions, convert_conditionals
from reference_impl.v1.reading.control_flow.dead_results import guard, in_branches
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    order,
)
from reference_impl.v1.reading.control_flow.frames import find_frames
from reference_impl.v1.reading.control_flow.loops import convert_loop
from reference_impl.v1.reading.control_flow.tensor_arrays import convert_tensor_arrays

# Ops that tf.gradients of TF 1.x made for a loop.
_BACKWARD = {
    "StackPush",
    "StackPushV2",
    "StackPop",
    "StackPopV2",
    "TensorArrayGradV3",
    "TensorArrayGradWithShape",
}


def functionalise(
    definition: schema.FunctionDef, ops: OpTable, name_function: Callable[[str], str]
) -> list[Any]:
    """Replace the TF 1.x control flow of a FunctionDef, in place; return the new FunctionDefs that
    it calls.

    If one still has TF 1.x control flow, the attribute V1_CONTROL_FLOW of a node has the reason.
    `name_function` returns a free name for the wanted name of a new function. Raises
    MalformedError, MissingKeyError: an edge dangles; nothing describes an op whose outputs are
    used.
    """
    if not has_v1_flow(definition):
        if not is_functional(definition):
            _arrays(definition, ops)
        return []
    before = schema.copy_of(definition)
    try:
        for node in definition.node_def:
            if node.op in _BACKWARD:
                raise NotConvertible(
                    node.name,
                    "hands values of a loop to its backward pass, in ways that have no gradient of"
                    " their own",
                )
        _arrays(definition, ops)
        made = _loops(definition, ops, name_function)
        branches: list[schema.FunctionDef] = []
        for each in [definition, *made]:
            branches += _conditionals(each, ops, name_function)
        return made + branches
    except NotConvertible as reason:
        definition.CopyFrom(before)
        _keep(definition, reason)
        return []


def functionalise_library(
    library: schema.FunctionDefLibrary,
    ops: OpTable,
    name_function: Callable[[str], str],
    damaged: Collection[str] = (),
) -> None:
    """Functionalise all functions of a FunctionDefLibrary in place (made by Defun and, in older
    files, Dataset.map).

    An inconsistent function, such as those with the names `damaged`, is not changed. Its error is
    told when it is called.
    """
    for definition in [
        definition for definition in library.function if not is_functional(definition)
    ]:
        if definition.signature.name in damaged:
            continue
        copy = schema.copy_of(definition)
        try:
            made = functionalise(copy, ops, name_function)
        except SavedModelError:
            continue
        definition.CopyFrom(copy)
        library.function.extend(made)


def results_in_branches(definition: schema.FunctionDef, ops: OpTable) -> bool:
    """Return whether a result of a FunctionDef has a value in one branch only; False for a graph
    that tf.cond does not write.
    """
    copy = schema.copy_of(definition)
    try:
        _loops(copy, ops, lambda name: name)
        return bool(in_branches(Conditions(EditableFunction(copy, ops))))
    except NotConvertible:
        return False


def is_functional(definition: schema.FunctionDef) -> bool:
    """Return whether a FunctionDef needs no rewriting.

    A TensorArray always does: its gradient fails in functions.
    """
    return not any(node.op in V1_FLOW or node.op == "TensorArrayV3" for node in definition.node_def)


def _keep(definition: schema.FunctionDef, reason: NotConvertible) -> None:
    """Record why the control flow is kept, at the node that prevented the conversion or else at its
    first node.
    """
    flow = [node for node in definition.node_def if node.op in V1_FLOW]
    node = next((node for node in definition.node_def if node.name == reason.node), flow[0])
    node.attr[V1_CONTROL_FLOW].s = str(reason).encode()


def _is_kept(definition: schema.FunctionDef) -> bool:
    return any(V1_CONTROL_FLOW in node.attr for node in definition.node_def)


def _arrays(definition: schema.FunctionDef, ops: OpTable) -> None:
    """Convert the TensorArrays of a function to lists, including those in loops and branches."""
    function = EditableFunction(definition, ops)
    reason = convert_tensor_arrays(function)
    for node in function.nodes.values() if reason is not None else ():
        if node.op.startswith("TensorArray"):
            node.attr[V1_TENSOR_ARRAY].s = str(reason).encode()
    function.store()


def _loops(
    definition: schema.FunctionDef, ops: OpTable, name_function: Callable[[str], str]
) -> list[Any]:
    """Convert the loops of a function to While, inner loops first.

    A loop around an unconverted loop is kept too.
    """
    function = EditableFunction(definition, ops)
    made: list[Any] = []
    kept: set[int] = set()
    first: Optional[NotConvertible] = None
    for frame in find_frames(function):
        try:
            if id(frame) not in kept:
                made += convert_loop(function, frame, name_function)
        except NotConvertible as reason:
            kept.add(id(frame))
            first = first or reason
        if id(frame) in kept:
            kept.add(id(frame.parent))
    if order(function) is None and not kept:
        raise NotConvertible(
            next(iter(function.nodes)), "is in a graph in which a loop waits for itself"
        )
    function.store()
    if first is not None:
        _keep(definition, first)
    return made


def _conditionals(
    definition: schema.FunctionDef, ops: OpTable, name_function: Callable[[str], str]
) -> list[Any]:
    """Convert the branches of a function without loops to If, including nested branches."""
    if _is_kept(definition):
        return []
    try:
        if any(node.op in ("Switch", "Merge") for node in definition.node_def):
            guard(EditableFunction(definition, ops))
        for parts in (
            lambda _, group: [group],
            stages.split,
        ):  # one If for each tf.cond, or several
            function = EditableFunction(definition, ops)
            made = convert_conditionals(function, name_function, parts)
            if order(function) is not None and all(
                order(EditableFunction(inner, ops)) is not None for inner in made
            ):
                function.store()
                return made
        raise NotConvertible(
            next(iter(function.nodes)), "is in a graph in which branches wait for each other"
        )
    except NotConvertible as reason:
        _keep(definition, reason)
        return []
