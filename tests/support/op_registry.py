"""The OpDefs of TensorFlow without TensorFlow, from the harness' table of what the releases
register.
"""

from __future__ import annotations

import functools
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.values import dtypes
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.records import Op


@functools.cache
def op_def(name: str) -> Optional[Any]:
    """Return what the newest release that has an op says of its tensors and attributes; None for an
    op that no release has.
    """
    known = history().op(name)
    if known is None:
        return None
    op = known.definition(known.members[-1])
    made = schema.OpDef(name=name, is_stateful=op.stateful)
    for attr in op.attrs:
        made.attr.add(name=attr.name, type=attr.type)
    inputs, _, outputs = op.signature.partition("->")
    for arguments, text in ((made.input_arg, inputs), (made.output_arg, outputs)):
        for argument in filter(None, text.strip().split(", ")):
            _add(arguments, op, *argument.split(": "))
    return made


def _add(arguments: Any, op: Op, name: str, kind: str) -> None:
    number, star, kind = kind.removeprefix("Ref(").removesuffix(")").rpartition("*")
    added = arguments.add(name=name, number_attr=number if star else "")
    attr = op.attr(kind)
    if attr is None:
        added.type = dtypes.by_name(kind).number
    elif attr.type == "list(type)":
        added.type_list_attr = kind
    else:
        added.type_attr = kind
