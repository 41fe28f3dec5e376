"""VarHandleOp inside a function: a variable without a name in the model.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Variable


@op("VarHandleOp")
def var_handle(*, dtype: np.dtype[Any], call: Call) -> Variable:
    return Variable(call.name, dtype)
