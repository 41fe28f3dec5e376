"""A FunctionDef as steps: nodes in the order of their data and control dependencies.

A node runs if a result needs it, if a control output names it, or if its op is stateful. Each step
names its inputs by the text of the FunctionDef, e.g. ``mul:z:0``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from reference_eval.errors import EvaluationError
from reference_eval.reading import (
    V1_FLOW,
    OpTable,
    attribute,
    dtype_of,
    parse_input,
    schema,
    sources_first,
)
from reference_eval.registry import Op


@dataclass
class Step:
    """One node.

    `groups` are the lengths of the input arguments of the OpDef: None for a single tensor.
    `outputs` are the names of the results and their dtypes; `lists` the same groups for output
    arguments. `last_used` are values that no later step needs. `kernel` evaluates the op, with
    `keywords`; it is None for an op that nothing evaluates and for the call of a function.
    `controls` are the nodes that run before this one without giving it a value.
    """

    name: str
    op: str
    inputs: list[str]
    groups: list[Optional[int]]
    outputs: list[tuple[str, np.dtype[Any]]]
    lists: list[Optional[int]]
    attributes: dict[str, Any]
    last_used: list[str] = field(default_factory=list)
    kernel: Optional[Op] = None
    keywords: dict[str, Any] = field(default_factory=dict)
    controls: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """One function: its arguments, its steps, and the values that it returns.

    `has_frames` tells that it has control flow of TF 1.x, so that its steps are in no order.
    """

    name: str
    arguments: list[tuple[str, np.dtype[Any]]]
    steps: list[Step]
    results: list[str]
    has_frames: bool = False


def make_plan(function: schema.FunctionDef, ops: OpTable) -> Plan:
    """Return the plan of a function.

    Raises:
      EvaluationError: its nodes form a cycle without being a loop of TF 1.x.
      MissingKeyError: nothing describes an op.
    """
    name = function.signature.name
    nodes = {node.name: node for node in function.node_def}
    sources = {}
    for key, node in nodes.items():
        read = map(_source, node.input)
        sources[key] = [source for source in read if source in nodes]  # the others: arguments
    needed = _needed(function, sources, ops)
    has_frames = any(nodes[key].op in V1_FLOW for key in needed)
    order = list(needed) if has_frames else sources_first({key: sources[key] for key in needed})
    if order is None:
        raise EvaluationError("its nodes form a cycle", file=ops.file, node=f"function {name!r}")
    steps = [_step(nodes[key], ops) for key in order]
    arguments = [
        (argument.name, dtype_of(argument.type)) for argument in function.signature.input_arg
    ]
    results = [function.ret[result.name] for result in function.signature.output_arg]
    _mark_last_uses(steps, results)
    return Plan(name, arguments, steps, [_whole(text) for text in results], has_frames)


def _source(text: str) -> str:
    return parse_input(text, in_function=True).source


def _whole(text: str) -> str:
    """Return ``node:argument:0`` for ``node:argument``, which means the same."""
    return f"{text}:0" if text.count(":") == 1 else text


def _needed(
    function: schema.FunctionDef, sources: dict[str, list[str]], ops: OpTable
) -> dict[str, None]:
    """Return the nodes that run, in the order of the function."""
    waiting = [_source(function.ret[result.name]) for result in function.signature.output_arg]
    waiting += sorted(function.control_ret.values())  # a protobuf map has no order
    waiting += [node.name for node in function.node_def if ops.is_stateful(node)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in sources and name not in found:
            found.add(name)
            waiting += sources[name]
    return {name: None for name in sources if name in found}


def _step(node: schema.NodeDef, ops: OpTable) -> Step:
    outputs = [
        (f"{node.name}:{name}:{position}", dtype_of(kind))
        for name, position, kind in ops.outputs(node)
    ]
    controls = [text[1:] for text in node.input if text.startswith("^")]
    inputs = [_whole(text) for text in node.input if not text.startswith("^")]
    definition = ops.get(node.op)
    attributes = {key: attribute(value) for key, value in node.attr.items() if key[0] != "_"}
    if definition is None:
        return Step(node.name, node.op, inputs, [], outputs, [], attributes, controls=controls)
    for attr in definition.attr:
        if attr.HasField("default_value") and attr.name not in attributes:
            attributes[attr.name] = attribute(attr.default_value)
    return Step(
        node.name,
        node.op,
        inputs,
        [_length(argument, attributes) for argument in definition.input_arg],
        outputs,
        [_length(argument, attributes) for argument in definition.output_arg],
        attributes,
        controls=controls,
    )


def _length(argument: schema.OpDef.ArgDef, attributes: dict[str, Any]) -> Optional[int]:
    """Return the number of tensors of an argument, or None for a single tensor."""
    if argument.number_attr:
        return int(attributes[argument.number_attr])
    if argument.type_list_attr:
        return len(attributes[argument.type_list_attr])
    return None


def _mark_last_uses(steps: list[Step], results: list[str]) -> None:
    seen = {_whole(text) for text in results}
    for step in reversed(steps):
        unused = [key for key, _ in step.outputs if key not in seen]
        step.last_used = [*dict.fromkeys(key for key in step.inputs if key not in seen), *unused]
        seen.update(step.inputs)
