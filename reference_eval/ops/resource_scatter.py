"""ResourceScatterUpdate, Add, Sub: changes rows of a variable in the order of the indices.

Dtypes: numbers.
Accuracy: exact: one rounding for each update.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("ResourceScatterUpdate")
def resource_scatter_update(variable: Variable, indices: Array, updates: Array) -> list[Any]:
    value = value_of(variable).copy()
    check_indices(indices, value.shape[0])
    value[indices] = updates
    variable.value = value
    return []


@op("ResourceScatterAdd")
def resource_scatter_add(variable: Variable, indices: Array, updates: Array) -> list[Any]:
    value = value_of(variable).copy()
    check_indices(indices, value.shape[0])
    np.add.at(value, indices, updates)
    variable.value = value
    return []


@op("ResourceScatterSub")
def resource_scatter_sub(variable: Variable, indices: Array, updates: Array) -> list[Any]:
    return resource_scatter_add(variable, indices, -updates)
