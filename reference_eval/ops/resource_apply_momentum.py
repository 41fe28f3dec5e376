"""ResourceApplyMomentum: a step with momentum.

Dtypes: floats.
Accuracy: exact: one rounding for each operation.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.ops.read_variable import value_of
from reference_eval.registry import op
from reference_eval.state import Variable


@op("ResourceApplyMomentum")
def resource_apply_momentum(
    variable: Variable,
    accumulator: Variable,
    rate: Array,
    gradient: Array,
    momentum: Array,
    *,
    use_nesterov: bool = False,
) -> list[Any]:
    accumulated = value_of(accumulator) * momentum + gradient
    step = gradient * rate + accumulated * momentum * rate if use_nesterov else accumulated * rate
    accumulator.value = accumulated
    variable.value = value_of(variable) - step
    return []
