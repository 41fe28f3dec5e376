"""VarIsInitializedOp: whether a variable has a value.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Variable


@op("VarIsInitializedOp")
def var_is_initialized(variable: Variable) -> Array:
    return np.asarray(variable.value is not None)
