"""AssignAddVariableOp, AssignSubVariableOp: adds to a variable.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("AssignAddVariableOp")
def assign_add_variable(variable: Variable, value: Array) -> list[Any]:
    variable.value = np.asarray(value_of(variable) + value)
    return []


@op("AssignSubVariableOp")
def assign_sub_variable(variable: Variable, value: Array) -> list[Any]:
    variable.value = np.asarray(value_of(variable) - value)
    return []
