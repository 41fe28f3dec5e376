"""Assert: fails with its data if the condition is false.

Dtypes: bool.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Assert")
def assert_(condition: Array, data: list[Array]) -> list[Any]:
    if not condition:
        said = " ".join([f"[{part.ravel()[:3].tolist()}]" for part in data])
        raise ValueError(f"assertion failed: {said}")
    return []
