"""StringSplit, StringSplitV2: the words of strings as a sparse tensor.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import re

import numpy as np

from reference_eval.arrays import Array, object_array
from reference_eval.registry import op


@op("StringSplitV2")
def string_split_v2(values: Array, sep: Array, *, maxsplit: int = -1) -> tuple[Array, Array, Array]:
    separator = sep.item() or None
    return sparse_rows([text.split(separator, maxsplit) for text in values.tolist()])


@op("StringSplit")
def string_split(
    values: Array, delimiter: Array, *, skip_empty: bool = True
) -> tuple[Array, Array, Array]:
    rows = []
    for text in values.tolist():
        parts = [text[at : at + 1] for at in range(len(text))]
        if delimiter.item():
            parts = re.split(b"[" + re.escape(delimiter.item()) + b"]", text)
        rows.append([part for part in parts if part or not skip_empty])
    return sparse_rows(rows)


def sparse_rows(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    """Return indices, values and shape of rows of different lengths."""
    places: list[tuple[int, int]] = []
    words: list[bytes] = []
    widest = 0
    for number, row in enumerate(rows):
        places += [(number, at) for at in range(len(row))]
        words += row
        widest = max(widest, len(row))
    indices = np.asarray(places, np.int64).reshape(-1, 2)
    return indices, object_array(words, (len(words),)), np.asarray([len(rows), widest], np.int64)
