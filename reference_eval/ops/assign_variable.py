"""AssignVariableOp: gives a variable a value.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Variable


@op("AssignVariableOp")
def assign_variable(variable: Variable, value: Array) -> list[Any]:
    if value.dtype != variable.dtype:
        raise TypeError(f"{variable.name!r} has dtype {variable.dtype}, not {value.dtype}")
    variable.value = value
    return []
