"""ResourceGather, ResourceGatherNd: rows or slices of a variable.

Dtypes: every.
Accuracy: exact; refuses an index out of range.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.ops.gather_nd import gather_nd
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("ResourceGather")
def resource_gather(variable: Variable, indices: Array) -> Array:
    value = value_of(variable)
    check_indices(indices, value.shape[0])
    return np.take(value, indices, 0)


@op("ResourceGatherNd")
def resource_gather_nd(variable: Variable, indices: Array) -> Array:
    return gather_nd(value_of(variable), indices)
