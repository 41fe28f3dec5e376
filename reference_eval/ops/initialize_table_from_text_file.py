"""InitializeTableFromTextFile, V2: fills a table from the lines of an asset.

Dtypes: every.
Accuracy: exact; other files are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Table

LINE_NUMBER, WHOLE_LINE = -1, -2


@op("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def initialize_table_from_text_file(
    table: Table,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: bytes = b"\t",
    offset: int = 0,
    call: Call,
) -> list[Any]:
    lines = call.read_asset(filename.item()).split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    for number, line in enumerate(
        lines[offset:] if vocab_size < 0 else lines[offset:][:vocab_size]
    ):
        line = line.removesuffix(b"\r")
        parts = line.split(delimiter)
        key = column(key_index, number, line, parts, table.key_dtype)
        value = column(value_index, number, line, parts, table.value_dtype)
        table.items[key.item()] = value
    table.filled = True
    return []


def column(index: int, number: int, line: bytes, parts: list[bytes], dtype: np.dtype[Any]) -> Array:
    """Return one column of a line as a key or a value."""
    if index == LINE_NUMBER:
        return np.asarray(number, dtype)
    text = line if index == WHOLE_LINE else parts[index]
    return np.asarray(text, object) if dtype == np.dtype(object) else np.asarray(text).astype(dtype)
