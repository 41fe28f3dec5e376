"""MutableHashTable, MutableDenseHashTable: a table that ops change.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Table


@op(
    *("MutableHashTable", "MutableHashTableV2", "AnonymousMutableHashTable"),
    *("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"),
)
def mutable_hash_table(
    *,
    key_dtype: np.dtype[Any],
    value_dtype: np.dtype[Any],
    container: bytes = b"",
    shared_name: bytes = b"",
    call: Call,
) -> Table:
    table: Table = call.shared(
        container, shared_name, lambda: Table(key_dtype, value_dtype, mutable=True)
    )
    return table


@op("MutableDenseHashTableV2", "MutableDenseHashTable")
def dense_hash_table(
    empty: Array,
    deleted: Optional[Array] = None,
    *,
    key_dtype: np.dtype[Any],
    value_dtype: np.dtype[Any],
) -> Table:
    markers = [key.item() for key in (empty, deleted) if key is not None]
    return Table(key_dtype, value_dtype, mutable=True, markers=tuple(markers))
