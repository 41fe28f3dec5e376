"""PartitionedCall, StatefulPartitionedCall: runs a function.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("PartitionedCall", "StatefulPartitionedCall")
def call_function(arguments: list[Any], *, f: FunctionName, call: Call) -> list[Any]:
    return call.function(f, arguments)
