"""Control flow of TF 1.x in a function becomes While and If (V1-11, V1-14).

Functions run either form; gradients, XLA and whoever reads an export know only the second. What is not provably a product of
tf.while_loop and tf.cond keeps its form, and the function says in an attribute which node was in the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.graph.control_flow import stages
from reference_impl.graph.control_flow.conditionals import Conditions, convert_conditionals
from reference_impl.graph.control_flow.dead_results import guard, in_branches
from reference_impl.graph.control_flow.flow import V1_FLOW, Body, Unprovable, order
from reference_impl.graph.control_flow.frames import find_frames
from reference_impl.graph.control_flow.loops import convert_loop
from reference_impl.graph.control_flow.tensor_arrays import convert_tensor_arrays
from reference_impl.graph.op_table import OpTable

# Attributes of nodes. tf.saved_model.load does not take unknown ones of functions.
KEPT = "_v1_control_flow"  # of one node: why the function still has control flow of TF 1.x
NOT_A_LIST = "_v1_tensor_array"  # why it still is an operation on a TensorArray
# What tf.gradients of TF 1.x made for a loop.
_BACKWARD = {"StackPush", "StackPushV2", "StackPop", "StackPopV2", "TensorArrayGradV3", "TensorArrayGradWithShape"}


def functionalise(function: Any, ops: OpTable, name_function: Callable[[str], str]) -> list[Any]:
    """Rewrite a FunctionDef in place.

    Args:
      function: the message.
      ops: describes the ops.
      name_function: makes a wanted name of a new function a free one.

    Returns:
      The functions that it calls now, each a FunctionDef without v1 control flow except where ``KEPT`` says so.

    Raises:
      MalformedError, MissingKeyError: an edge dangles; nothing describes an op whose outputs are used.
    """
    if not has_v1_flow(function):
        if not is_functional(function):
            _arrays(function, ops)
        return []
    before = schema.FunctionDef()
    before.CopyFrom(function)
    try:
        for node in function.node_def:
            if node.op in _BACKWARD:
                raise Unprovable(
                    node.name, "hands values of a loop to its backward pass, in ways that have no gradient of their own"
                )
        _arrays(function, ops)
        made = _loops(function, ops, name_function)
        return made + [inner for each in [function, *made] for inner in _conditionals(each, ops, name_function)]
    except Unprovable as reason:
        function.CopyFrom(before)
        _keep(function, reason)
        return []


def functionalise_library(library: Any, ops: OpTable, name_function: Callable[[str], str]) -> None:
    """Do that to all functions of a FunctionDefLibrary, in place: those of Defun and, in older files, of Dataset.map.

    One that contradicts itself stays: who calls it is told by TensorFlow.
    """
    for function in [function for function in library.function if not is_functional(function)]:
        copy = schema.FunctionDef()
        copy.CopyFrom(function)
        try:
            made = functionalise(copy, ops, name_function)
        except SavedModelError:
            continue
        function.CopyFrom(copy)
        library.function.extend(made)


def results_in_branches(function: Any, ops: OpTable) -> bool:
    """Whether a result of a FunctionDef has a value in one branch only. False when the graph is none that tf.cond writes."""
    copy = schema.FunctionDef()
    copy.CopyFrom(function)
    try:
        _loops(copy, ops, lambda name: name)
        return bool(in_branches(Conditions(Body(copy, ops))))
    except Unprovable:
        return False


def has_v1_flow(function: Any) -> bool:
    return any(node.op in V1_FLOW for node in function.node_def)


def is_functional(function: Any) -> bool:
    """Whether there is nothing to rewrite. TensorFlow's gradient of a TensorArray fails in functions, without a loop too."""
    return not any(node.op in V1_FLOW or node.op == "TensorArrayV3" for node in function.node_def)


def _keep(function: Any, reason: Unprovable) -> None:
    """Note on the node in the way, or where there is none on the first of the control flow, why it stays."""
    flow = [node for node in function.node_def if node.op in V1_FLOW]
    node = next((node for node in function.node_def if node.name == reason.node), flow[0])
    node.attr[KEPT].s = str(reason).encode()


def _is_kept(function: Any) -> bool:
    return any(KEPT in node.attr for node in function.node_def)


def _arrays(function: Any, ops: OpTable) -> None:
    """TensorArrays of a function, in v1 branches and loops too, which are not apart yet."""
    body = Body(function, ops)
    reason = convert_tensor_arrays(body)
    for node in body.nodes.values() if reason is not None else ():
        if node.op.startswith("TensorArray"):
            node.attr[NOT_A_LIST].s = str(reason).encode()
    body.store()


def _loops(function: Any, ops: OpTable, name_function: Callable[[str], str]) -> list[Any]:
    """Loops of a function, inner ones first. One that stays keeps those around it."""
    body = Body(function, ops)
    made: list[Any] = []
    kept: set[int] = set()
    first: Optional[Unprovable] = None
    for frame in find_frames(body):
        try:
            if id(frame) not in kept:
                made += convert_loop(body, frame, name_function)
        except Unprovable as reason:
            kept.add(id(frame))
            first = first or reason
        if id(frame) in kept:
            kept.add(id(frame.parent))
    if order(body) is None and not kept:
        raise Unprovable(next(iter(body.nodes)), "is in a graph in which a loop waits for itself")
    body.store()
    if first is not None:
        _keep(function, first)
    return made


def _conditionals(function: Any, ops: OpTable, name_function: Callable[[str], str]) -> list[Any]:
    """Branches of a function that has no loops left; inside of branches too, since those are found along."""
    if _is_kept(function):
        return []
    try:
        if any(node.op in ("Switch", "Merge") for node in function.node_def):
            guard(Body(function, ops))
        for parts in (stages.whole, stages.split):
            body = Body(function, ops)
            made = convert_conditionals(body, name_function, parts)
            if order(body) is not None and all(order(Body(inner, ops)) is not None for inner in made):
                body.store()
                return made
        raise Unprovable(next(iter(body.nodes)), "is in a graph in which branches wait for each other")
    except Unprovable as reason:
        _keep(function, reason)
        return []
