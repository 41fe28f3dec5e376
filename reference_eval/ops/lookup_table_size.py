"""LookupTableSize, V2: the number of keys.

Dtypes: int64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Table


@op("LookupTableSize", "LookupTableSizeV2")
def lookup_table_size(table: Table) -> Array:
    return np.asarray(len(table.items), np.int64)
