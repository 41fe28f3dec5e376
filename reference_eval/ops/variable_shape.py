"""VariableShape: the sizes of a variable.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("VariableShape")
def variable_shape(variable: Variable, *, out_type: np.dtype[Any]) -> Array:
    return np.asarray(value_of(variable).shape, out_type)
