"""Check the edges of a function: what its nodes take and what it returns.

TensorFlow checks them when a function is called, and its errors name neither the file nor the
function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.op_rules import OpRules

Rules = Callable[[str], Optional[OpRules]]


def check(function: schema.FunctionDef, rules_of: Rules, file: str) -> None:
    """Check every edge of a function; `rules_of` returns the rules of an op, or None for an unknown
    op.

    Raises MalformedError: a tensor or a node does not exist, or a node has too few or too many
    inputs.
    """
    arguments = {argument.name for argument in function.signature.input_arg}
    ops = {node.name: node.op for node in function.node_def}
    rules = {op: rules_of(op) for op in set(ops.values())}
    outputs = {
        name: None if (known := rules[op]) is None else known.outputs for name, op in ops.items()
    }
    name = function.signature.name
    for node in function.node_def:
        fault = _fault(node, rules[node.op], arguments, outputs)
        if fault is not None:
            raise errors.MalformedError(fault, file=file, node=f"{node.name} of function {name}")
    for text in function.ret.values():
        if not _exists(text, arguments, outputs):
            raise errors.MalformedError(
                f"there is no tensor {text!r}", file=file, node=f"a result of function {name}"
            )


def _fault(
    node: schema.NodeDef,
    rules: Optional[OpRules],
    arguments: Collection[str],
    outputs: Mapping[str, Optional[Collection[str]]],
) -> Optional[str]:
    """Return what is wrong with the inputs of a node, or None."""
    count, after_control, whole_lists = 0, False, False
    for text in node.input:
        if text.startswith("^"):
            after_control = True
            if text[1:] not in outputs:
                return f"there is no node {text[1:]!r} to wait for"
            continue
        if after_control:
            return f"the input {text!r} follows a control input"
        if not _exists(text, arguments, outputs):
            return f"there is no tensor {text!r}"
        count += 1
        whole_lists = whole_lists or not text.rpartition(":")[2].isdecimal()
    return None if rules is None or whole_lists else rules.wrong_count(node, count)


def _exists(
    text: str, arguments: Collection[str], outputs: Mapping[str, Optional[Collection[str]]]
) -> bool:
    """Return whether an argument or an output argument of a node has the name that an input
    gives.
    """
    source, _, port = text.partition(":")
    if source not in outputs:
        return source in arguments
    known = outputs[source]
    return known is None or port.partition(":")[0] in known
