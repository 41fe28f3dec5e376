"""Placeholder: an input that the signature does not list, so the run fails.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.errors import EvaluationError
from reference_eval.executor import Call
from reference_eval.registry import op


@op("Placeholder", "PlaceholderV2")
def placeholder(*, call: Call) -> Array:
    raise EvaluationError(f"the placeholder {call.name!r} is not an input of the signature")
