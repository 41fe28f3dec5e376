"""While, StatelessWhile: runs a function while another one returns true.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.executor import Call
from reference_eval.ops.if_ import is_true
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("While", "StatelessWhile")
def while_(values: list[Any], *, cond: FunctionName, body: FunctionName, call: Call) -> list[Any]:
    while is_true(call.function(cond, values)[0]):
        values = call.function(body, values)
    return values
