"""ResourceApplyGradientDescent: subtracts a scaled gradient.

Dtypes: floats.
Accuracy: exact: two roundings.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("ResourceApplyGradientDescent")
def resource_apply_gradient_descent(variable: Variable, alpha: Array, delta: Array) -> list[Any]:
    variable.value = value_of(variable) - alpha * delta
    return []
