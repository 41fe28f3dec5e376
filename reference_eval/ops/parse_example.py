"""ParseExample, ParseExampleV2: tf.Example messages as dense, sparse and ragged tensors.

Dtypes: string to float32, int64, string.
Accuracy: exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.examples import Features, feature, features_of
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("ParseExampleV2")
def parse_example_v2(
    serialized: Array,
    names: Array,
    sparse_keys: Array,
    dense_keys: Array,
    ragged_keys: Array,
    dense_defaults: list[Array],
    *,
    sparse_types: list[np.dtype[Any]],
    Tdense: list[np.dtype[Any]],
    dense_shapes: list[tuple[int, ...]],
    ragged_value_types: Sequence[np.dtype[Any]] = (),
    ragged_split_types: Sequence[np.dtype[Any]] = (),
) -> list[list[Array]]:
    parsed = parse(
        serialized,
        sparse_keys.tolist(),
        dense_keys.tolist(),
        dense_defaults,
        sparse_types,
        Tdense,
        dense_shapes,
    )
    examples = [features_of(text) for text in serialized.ravel().tolist()]
    ragged_values, ragged_splits = [], []
    for key, dtype, kind in zip(ragged_keys.tolist(), ragged_value_types, ragged_split_types):
        rows = [feature(example, key, dtype) or [] for example in examples]
        ragged_values.append(listed(list(itertools.chain.from_iterable(rows)), dtype))
        splits = np.cumsum([0, *map(len, rows)]).astype(kind)
        ragged_splits.append(splits if serialized.ndim else splits[:0])
    return [*parsed, ragged_values, ragged_splits]


@op("ParseExample")
def parse_example(
    serialized: Array,
    names: Array,
    sparse_keys: list[Array],
    dense_keys: list[Array],
    dense_defaults: list[Array],
    *,
    sparse_types: list[np.dtype[Any]],
    Tdense: list[np.dtype[Any]],
    dense_shapes: list[tuple[int, ...]],
) -> list[list[Array]]:
    return parse(
        serialized,
        [key.item() for key in sparse_keys],
        [key.item() for key in dense_keys],
        dense_defaults,
        sparse_types,
        Tdense,
        dense_shapes,
    )


def parse(
    serialized: Array,
    sparse_keys: list[bytes],
    dense_keys: list[bytes],
    defaults: list[Array],
    sparse_types: list[np.dtype[Any]],
    dense_types: list[np.dtype[Any]],
    shapes: list[tuple[int, ...]],
) -> list[list[Array]]:
    """Return sparse indices, values and shapes, and dense tensors: one list for each."""
    examples = [features_of(text) for text in serialized.ravel().tolist()]
    sparse = [sparse_feature(examples, key, dtype) for key, dtype in zip(sparse_keys, sparse_types)]
    dense = []
    for key, default, dtype, shape in zip(dense_keys, defaults, dense_types, shapes):
        rows = dense_feature(examples, key, default, dtype, shape)
        dense.append(rows if serialized.ndim else rows[0])
    if serialized.ndim == 0:
        sparse = [(indices[:, 1:], values, size[1:]) for indices, values, size in sparse]
    return [
        [indices for indices, _, _ in sparse],
        [values for _, values, _ in sparse],
        [size for _, _, size in sparse],
        dense,
    ]


def sparse_feature(
    examples: list[Features], key: bytes, dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Return indices, values and shape of one feature of all examples."""
    rows = [feature(example, key, dtype) for example in examples]
    places: list[tuple[int, int]] = []
    values: list[Any] = []
    widest = 0
    for number, row in enumerate(rows):
        found = row or []
        places += [(number, at) for at in range(len(found))]
        values += found
        widest = max(widest, len(found))
    indices = np.asarray(places, np.int64).reshape(-1, 2)
    return indices, listed(values, dtype), np.asarray([len(rows), widest], np.int64)


def dense_feature(
    examples: list[Features],
    key: bytes,
    default: Array,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> Array:
    """Return one feature of all examples; the default where it is missing."""
    variable = bool(shape) and shape[0] == -1
    rows = []
    for example in examples:
        found = feature(example, key, dtype)
        needed = not default.size and not variable and 0 not in shape
        if found is None and needed:
            raise ValueError(
                f"Feature: {key.decode()} (data type) is required but could not be found."
            )
        if found is not None:
            rows.append(listed(found, dtype).reshape(shape))
        elif variable:
            rows.append(np.empty([0, *shape[1:]], dtype))
        else:
            rows.append(np.broadcast_to(default, shape))
    if not variable:
        return np.stack(rows) if rows else np.empty([0, *shape], dtype)
    longest = max([len(row) for row in rows], default=0)
    check_shape([len(rows), longest, *shape[1:]], dtype.itemsize)
    filler = default.item() if default.size else np.zeros((), dtype).item()
    filler = b"" if dtype == np.dtype(object) and not default.size else filler
    out = np.full([len(rows), longest, *shape[1:]], filler, dtype)
    for number, row in enumerate(rows):
        out[number, : len(row)] = row
    return out


def listed(values: list[Any], dtype: np.dtype[Any]) -> Array:
    """Return values as a vector of a dtype; strings stay bytes."""
    out = np.empty(len(values), dtype)
    out[:] = values
    return out
