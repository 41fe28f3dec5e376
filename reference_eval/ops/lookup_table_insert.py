"""LookupTableInsert, Import, InitializeTable: adds keys and values.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import Table


@op("LookupTableInsert", "LookupTableInsertV2")
def lookup_table_insert(table: Table, keys: Array, values: Array) -> list[Any]:
    rows = values.reshape([keys.size, *values.shape[keys.ndim :]])
    table.items.update(zip(keys.ravel().tolist(), rows))
    table.filled = True
    return []


@op("LookupTableImport", "LookupTableImportV2")
def lookup_table_import(table: Table, keys: Array, values: Array) -> list[Any]:
    table.items.clear()
    lookup_table_insert(table, keys, values)
    for marker in table.markers:  # a dense table is saved with its empty buckets
        table.items.pop(marker, None)
    return []


@op("InitializeTable", "InitializeTableV2")
def initialize_table(table: Table, keys: Array, values: Array) -> list[Any]:
    return lookup_table_insert(table, keys, values)
