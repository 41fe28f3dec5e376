"""LookupTableExport, V2: all keys and values, in the order of their insertion.

Dtypes: every.
Accuracy: exact up to order.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Table


@op("LookupTableExport", "LookupTableExportV2")
def lookup_table_export(table: Table) -> tuple[Array, Array]:
    keys = np.empty(len(table.items), table.key_dtype)
    keys[:] = list(table.items)
    values = np.empty(len(table.items), table.value_dtype)
    values = np.stack(list(table.items.values())) if table.items else values
    return keys, values
