"""Convert the attrs of a node to an older release: drop unknown ones if no answer depends on them,
add missing defaults.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.values.dtypes import by_name
from savedmodel_tools.skew import advice
from savedmodel_tools.skew.history import History, OpHistory
from savedmodel_tools.skew.protos import plain_value
from savedmodel_tools.skew.records import Attr

# Attrs without which a valid model answers the same, whatever they hold: each proved in a release
# that lacks it (tests/savedmodel_tools/test_downgrade_rules.py). The table of the same name in
# `skew.advice` is of those that say nothing at all.
_OF_PRODUCTS = (
    *itertools.product(("MatMul",), ("grad_a", "grad_b")),
    *itertools.product(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("grad_x", "grad_y")),
)
IDLE: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        _OF_PRODUCTS,
        "it only marks products that are gradients; no kernel of the release computes them"
        " otherwise",
    ),
    **{
        (op, "sparse_gradient"): "it only says what form its gradient has"
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    },
    (
        "AssignVariableOp",
        "validate_shape",
    ): "it only refuses values of a wrong shape while the model runs",
}
IGNORED_SINCE = advice.IGNORES_UNKNOWN_ATTRS
_METADATA = "it only names the dataset in messages"


@dataclass(frozen=True)
class Change:
    """One kind of rewrite of an op, file or object; ``what`` says it in words, with the reason why
    no answer changes.

    ``kind``: drop_attr, add_attr, drop_node, replace_op, drop_file, drop_object.
    """

    kind: str
    op: str
    what: str


def fit(node: schema.NodeDef, index: int, table: History) -> Iterator[Change]:
    """Drop the attrs that the release does not know and that say nothing, and write out the
    defaults that it does not have.

    Attrs that cannot be changed without changing an answer stay, and the check of what the release
    lacks then finds them.
    """
    known = table.op(node.op)
    here = known.definition(index) if known else None
    if known is None or here is None:
        return
    for name in sorted(node.attr):
        if name.startswith("_") or here.attr(name) is not None:
            continue
        why = idle(known, name, node.attr[name], index)
        if why:
            del node.attr[name]
            yield Change("drop_attr", node.op, f"attr '{name}' of '{node.op}' dropped: {why}")
    for attr in here.attrs:
        if attr.default is None and attr.name not in node.attr:
            default = _newest(known, attr.name)
            value = None if default is None else _message(default)
            if value is not None:
                node.attr[attr.name].CopyFrom(value)
                yield Change(
                    "add_attr",
                    node.op,
                    f"attr '{attr.name}' of '{node.op}' written out: the release has no default"
                    " for it",
                )


def idle(known: OpHistory, name: str, value: schema.AttrValue, index: int) -> str:
    """Why a release that does not know the attr answers the same without it; "" when it may not."""
    why = advice.IDLE_ATTRS.get((known.name, name)) or IDLE.get((known.name, name))
    if name == "metadata" and known.name.endswith(
        ("Dataset", "DatasetV2", "DatasetV3", "DatasetV4")
    ):
        why = _METADATA
    if why:
        return why
    # The first release that has it: its default is what the op did before.
    first = next((member for member in known.attr_members(name) if member > index), None)
    op = known.definition(first) if first is not None else None
    attr = op.attr(name) if op else None
    if attr is not None and attr.default is not None and plain_value(value) == attr.default:
        return "it has its default, which is what the op did before it had the attr"
    return ""


def _newest(known: OpHistory, name: str) -> Optional[Attr]:
    """The attr as the newest release that has a default for it knows it."""
    for member in reversed(known.attr_members(name)):
        op = known.definition(member)
        attr = op.attr(name) if op else None
        if attr is not None and attr.default is not None:
            return attr
    return None


def _message(attr: Attr) -> Optional[schema.AttrValue]:
    """An attr's default as a message; None for types that no op has needed yet."""
    value: Any = attr.default
    out = schema.AttrValue()
    if attr.type == "type":
        out.type = by_name(value).number
    elif attr.type == "int":
        out.i = value
    elif attr.type == "bool":
        out.b = value
    elif attr.type == "float":
        out.f = float(value)
    elif attr.type == "string" and isinstance(value, str):
        out.s = value.encode()
    elif attr.type.startswith("list(") and not value:
        out.list.SetInParent()
    else:
        return None
    return out
