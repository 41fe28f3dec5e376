"""ReadVariableOp: the value of a variable.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Variable


@op("ReadVariableOp")
def read_variable(variable: Variable) -> Array:
    return value_of(variable)


def value_of(variable: Variable) -> Array:
    """Return the value of a variable. Raises ValueError if it has none."""
    if variable.value is None:
        because = f": {variable.why_empty}" if variable.why_empty else ""
        raise ValueError(f"the variable {variable.name!r} has no value{because}")
    return variable.value
