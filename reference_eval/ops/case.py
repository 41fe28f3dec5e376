"""Case, StatelessCase: runs the function of an index, the last one for an index out of range.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("Case", "StatelessCase")
def case(
    index: Array, arguments: list[Any], *, branches: list[FunctionName], call: Call
) -> list[Any]:
    chosen = int(index) if 0 <= index < len(branches) else len(branches) - 1
    return call.function(branches[chosen], arguments)
