"""Make results fail that have a value in only one branch.

A session that fetches a tensor in a branch of tf.cond fails when the other branch is taken. A
function silently returns an empty tensor instead. So such a result becomes a Merge whose other
input is an assertion that fails.

RFC: V1-11
"""

from __future__ import annotations

from typing import Any

from reference_impl.format import schema
from reference_impl.graph.node_defs import scalar_tensor, string_tensor
from reference_impl.v1.reading.control_flow.conditionals import BOOL, Condition, Conditions
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    source,
)


def in_branches(conditions: Conditions) -> dict[str, Condition]:
    """Return the names of the results that are not always alive, with the conditions under which
    they are alive.
    """
    function = conditions.function
    found = {
        key: conditions.behind(function.resolve(text))
        for key, text in function.definition.ret.items()
    }
    return {key: condition for key, condition in found.items() if condition is not None}


def guard(function: EditableFunction) -> None:
    """Make results of a function fail when they have no value.

    The FunctionDef is written if it has such results.

    Raises NotConvertible: tf.cond does not make such a graph, or the result is a handle.
    """
    conditions = Conditions(function)
    found = in_branches(conditions)
    for key, condition in found.items():
        text = function.resolve(function.definition.ret[key])
        if function.dtype(text) in (schema.DT_RESOURCE, schema.DT_VARIANT):
            raise NotConvertible(
                source(text), "is a handle and a result although it has a value in one branch only"
            )
        name = source(text)
        around: Any = condition
        while around is not None:
            text = _join(conditions, around, text, name)
            around = around.outer
        function.definition.ret[key] = text
    if found:
        function.store()


def _join(conditions: Conditions, condition: Condition, text: str, name: str) -> str:
    """Add a Merge of a tensor that is alive under ``condition`` with an assertion that fails;
    return the text of its output.
    """
    function = conditions.function
    predicate = next(
        conditions.predicates[switch]
        for switch, key in conditions.keys.items()
        if key == condition.key and conditions.of[switch] is condition.outer
    )
    dtype = function.dtype(text)
    switch = function.node(f"{name}/not_taken/Switch", "Switch", [predicate, predicate])
    switch.attr["T"].type = BOOL
    if condition.branch:
        fails = function.identity_text(
            f"{name}/not_taken/Identity", f"{switch.name}:output_false:0", BOOL
        )
    else:
        taken = f"{switch.name}:output_true:0"
        negation = function.node(f"{name}/not_taken/LogicalNot", "LogicalNot", [taken])
        fails = f"{negation.name}:y:0"
    text_of_reason = f"{name} is in a branch that is not taken, so it has no value".encode()
    reason = function.constant(
        f"{name}/not_taken/reason", string_tensor(text_of_reason), [source(fails)]
    )
    check = function.node(f"{name}/not_taken/Assert", "Assert", [fails, reason])
    check.attr["T"].list.type.append(schema.DT_STRING)
    check.attr["summarize"].i = 3
    empty = scalar_tensor(dtype)
    empty.tensor_shape.dim.add(size=0)
    nothing = function.constant(f"{name}/not_taken/nothing", empty, [check.name])
    merge = function.node(f"{name}/not_taken/Merge", "Merge", [text, nothing])
    merge.attr["T"].type, merge.attr["N"].i = dtype, 2
    return f"{merge.name}:output:0"
