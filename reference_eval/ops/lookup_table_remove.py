"""LookupTableRemoveV2: removes keys from a mutable table; others are ignored.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Table


@op("LookupTableRemoveV2")
def lookup_table_remove(table: Table, keys: Array) -> list[Any]:
    for key in keys.ravel().tolist():
        table.items.pop(key, None)
    return []
