"""If, StatelessIf: runs one of two functions. A string or list is true if it is not empty.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("If", "StatelessIf")
def if_(
    condition: Array,
    arguments: list[Any],
    *,
    then_branch: FunctionName,
    else_branch: FunctionName,
    call: Call,
) -> list[Any]:
    return call.function(then_branch if is_true(condition) else else_branch, arguments)


def is_true(condition: Array) -> bool:
    """Return what a condition means, e.g. True for the number 2 or the string ``b"no"``."""
    return bool(condition.item() if condition.ndim == 0 else condition.size)
