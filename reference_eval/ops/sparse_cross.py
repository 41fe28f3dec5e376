"""SparseCross: every combination of the features of several columns, hashed or joined.

Dtypes: int64, string.
Accuracy: exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_eval.arrays import Array, check_indices, object_array
from reference_eval.reading import fingerprint64
from reference_eval.registry import op
from reference_eval.sizes import check_shape

WORD = 2**64
# Of FingerprintCat64, which mixes two 64-bit numbers.
FACTOR = 0xC6A4A7935BD1E995


@op("SparseCross")
def sparse_cross(
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    internal_type: np.dtype[Any],
) -> tuple[Array, Array, Array]:
    received = [part.dtype for part in (*values, *dense)]
    if internal_type == np.dtype(object) and any(kind != internal_type for kind in received):
        raise TypeError("Input values should be of the internal type string")
    if not hashed_output and internal_type != np.dtype(object):
        raise ValueError("SparseCross is not evaluated for joined fingerprints")
    batch = int(shapes[0][0]) if shapes else len(dense[0])
    check_shape([batch], 64)
    columns = [rows_of(*pair, batch) for pair in zip(indices, values)]
    columns += [matrix.tolist() for matrix in dense]
    rows = list(zip(*columns))
    counts = [math.prod(map(len, row)) for row in rows]
    check_shape([sum(counts)], 64)
    crosses: list[Any] = []
    places: list[list[int]] = []
    for number, row in enumerate(rows):
        for place, cross in enumerate(itertools.product(*row)):
            crosses.append(
                hashed(cross, num_buckets, hash_key) if hashed_output else b"_X_".join(cross)
            )
            places.append([number, place])
    return (
        np.asarray(places, np.int64).reshape(-1, 2),
        np.asarray(crosses, np.int64) if hashed_output else object_array(crosses, [len(crosses)]),
        np.asarray([batch, max(counts, default=0)], np.int64),
    )


def rows_of(indices: Array, values: Array, batch: int) -> list[list[Any]]:
    """Return the features of each row of a sparse column."""
    check_indices(indices[:, 0], batch)
    rows: list[list[Any]] = [[] for _ in range(batch)]
    for row, value in zip(indices[:, 0].tolist(), values.tolist()):
        rows[row].append(value)
    return rows


def hashed(cross: Sequence[Any], num_buckets: int, key: int) -> int:
    """Return the bucket of a cross; without buckets, its hash as a number that is not negative."""
    result = key % WORD
    for feature in cross:
        number = fingerprint64(feature) if isinstance(feature, bytes) else feature % WORD
        result = mixed(result, number)
    return result % (num_buckets or 2**63 - 1)


def mixed(first: int, second: int) -> int:
    """Return FingerprintCat64 of two numbers."""
    result = (first ^ FACTOR) ^ (shift_mixed(second * FACTOR % WORD) * FACTOR % WORD)
    result = result * FACTOR % WORD
    return shift_mixed(shift_mixed(result) * FACTOR % WORD)


def shift_mixed(value: int) -> int:
    """Return a number whose lower bits are mixed with its upper bits."""
    return value ^ (value >> 47)
