"""Results that have a value in one branch only (V1-11).

A session that is asked for a tensor in a branch of tf.cond fails when the other one is taken. A function hands out an empty
tensor instead, without a word. So such a result becomes a Merge whose other input is an assertion that fails.
"""

from __future__ import annotations

from typing import Any

from reference_impl.graph.control_flow.conditionals import BOOL, Condition, Conditions
from reference_impl.graph.control_flow.flow import Body, Unprovable, source
from reference_impl.graph.op_table import RESOURCE, STRING, VARIANT


def in_branches(conditions: Conditions) -> dict[str, Condition]:
    """Names of the results that are not always alive, with the condition under which they are."""
    body = conditions.body
    found = {key: conditions.behind(body.resolve(text)) for key, text in body.function.ret.items()}
    return {key: condition for key, condition in found.items() if condition is not None}


def guard(body: Body) -> None:
    """Let those results of ``body`` fail that would have no value; writes the FunctionDef when there are some.

    Raises:
      Unprovable: the graph is none that tf.cond writes, or the result is a handle.
    """
    conditions = Conditions(body)
    found = in_branches(conditions)
    for key, condition in found.items():
        text = body.resolve(body.function.ret[key])
        if body.dtype(text) in (RESOURCE, VARIANT):
            raise Unprovable(source(text), "is a handle and a result although it has a value in one branch only")
        name = source(text)
        around: Any = condition
        while around is not None:
            text = _join(conditions, around, text, name)
            around = around.outer
        body.function.ret[key] = text
    if found:
        body.store()


def _join(conditions: Conditions, condition: Condition, text: str, name: str) -> str:
    """A Merge of a tensor that is alive under ``condition`` with an assertion that fails; the text of its output."""
    body = conditions.body
    predicate = next(
        conditions.predicates[switch]
        for switch, key in conditions.keys.items()
        if key == condition.key and conditions.of[switch] is condition.outer
    )
    dtype = body.dtype(text)
    switch = body.add(f"{name}/not_taken/Switch", "Switch", [predicate, predicate])
    switch.attr["T"].type = BOOL
    if condition.branch:
        false = body.add(f"{name}/not_taken/Identity", "Identity", [f"{switch.name}:output_false:0"])
        false.attr["T"].type = BOOL
        fails = f"{false.name}:output:0"
    else:
        false = body.add(f"{name}/not_taken/LogicalNot", "LogicalNot", [f"{switch.name}:output_true:0"])
        fails = f"{false.name}:y:0"
    reason = _constant(body, f"{name}/not_taken/reason", STRING, false.name)
    reason.attr["value"].tensor.tensor_shape.SetInParent()
    reason.attr["value"].tensor.string_val.append(f"{name} is in a branch that is not taken, so it has no value".encode())
    check = body.add(f"{name}/not_taken/Assert", "Assert", [fails, f"{reason.name}:output:0"])
    check.attr["T"].list.type.append(STRING)
    check.attr["summarize"].i = 3
    nothing = _constant(body, f"{name}/not_taken/nothing", dtype, check.name)
    nothing.attr["value"].tensor.tensor_shape.dim.add(size=0)
    merge = body.add(f"{name}/not_taken/Merge", "Merge", [text, f"{nothing.name}:output:0"])
    merge.attr["T"].type, merge.attr["N"].i = dtype, 2
    return f"{merge.name}:output:0"


def _constant(body: Body, name: str, dtype: int, after: str) -> Any:
    node = body.add(name, "Const", (), [after])
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = dtype
    return node
