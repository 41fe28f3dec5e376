"""DenseToDenseSetOperation: the rows of the last axis as sets; the results in order, as a sparse
tensor.

Dtypes: integers, string.
Accuracy: exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op

_OPERATIONS: dict[bytes, Callable[[set[Any], set[Any]], set[Any]]] = {
    b"a-b": set.difference,
    b"b-a": lambda first, second: second - first,
    b"intersection": set.intersection,
    b"union": set.union,
}


@op("DenseToDenseSetOperation")
def dense_to_dense_set_operation(
    first: Array, second: Array, *, set_operation: bytes
) -> tuple[Array, Array, Array]:
    combine = _OPERATIONS.get(set_operation.lower())
    if combine is None:
        raise ValueError(f"Invalid set_operation {set_operation.decode()}")
    if first.ndim < 2 or first.ndim != second.ndim or first.shape[:-1] != second.shape[:-1]:
        raise ValueError(f"the shapes {list(first.shape)} and {list(second.shape)} do not fit")
    groups = first.shape[:-1]
    rows = {
        group: sorted(combine(set(first[group].tolist()), set(second[group].tolist())))
        for group in np.ndindex(groups)
    }
    places: list[tuple[int, ...]] = []
    values: list[Any] = []
    for group, row in rows.items():
        places += [(*group, at) for at in range(len(row))]
        values += row
    return (
        np.asarray(places, np.int64).reshape(len(places), first.ndim),
        np.asarray(values, first.dtype),
        np.asarray([*groups, max(map(len, rows.values()), default=0)], np.int64),
    )
