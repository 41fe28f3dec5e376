"""HashTable, HashTableV2: a table that is filled once.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Table


@op("HashTable", "HashTableV2", "AnonymousHashTable")
def hash_table(
    *,
    key_dtype: np.dtype[Any],
    value_dtype: np.dtype[Any],
    container: bytes = b"",
    shared_name: bytes = b"",
    call: Call,
) -> Table:
    table: Table = call.shared(container, shared_name, lambda: Table(key_dtype, value_dtype))
    return table
