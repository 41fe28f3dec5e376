"""IdentityN: the inputs themselves.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.registry import op


@op("IdentityN")
def identity_n(values: list[Any]) -> list[Any]:
    return values
