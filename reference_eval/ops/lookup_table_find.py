"""LookupTableFind, V2: the values of keys, a default where there is none.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Table


@op("LookupTableFind", "LookupTableFindV2")
def lookup_table_find(table: Table, keys: Array, default: Array) -> Array:
    if not (table.filled or table.mutable):
        because = f" The init op failed: {table.why_empty}" if table.why_empty else ""
        raise ValueError(f"Table not initialized.{because}")
    key_axes = keys.ndim - len(key_shape(table))
    found = [table.items.get(key, default) for key in keys.ravel().tolist()]
    out = np.empty([len(found), *default.shape], default.dtype)
    for row, value in enumerate(found):
        out[row, ...] = value  # else an array of objects would hold arrays
    return out.reshape(keys.shape[:key_axes] + default.shape)


def key_shape(table: Table) -> tuple[int, ...]:
    """Return the shape of one key, which is a scalar in every table that is evaluated."""
    return ()
