"""RaggedTensorToTensor: a ragged tensor, padded with a default value.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("RaggedTensorToTensor")
def ragged_tensor_to_tensor(
    shape: Array,
    values: Array,
    default: Array,
    partitions: list[Array],
    *,
    row_partition_types: list[bytes],
) -> Array:
    kinds = list(row_partition_types)
    count = None
    if kinds[0] == b"FIRST_DIM_SIZE":
        count = int(partitions[0])
        kinds, partitions = kinds[1:], partitions[1:]
    all_lengths = []
    for kind, partition in zip(kinds, partitions):
        lengths = row_lengths(kind, partition, count)
        all_lengths.append(lengths)
        count = int(lengths.sum())
    found = [len(all_lengths[0]), *[int(lengths.max(initial=0)) for lengths in all_lengths]]
    found += values.shape[1:]
    wanted = [int(size) for size in shape.ravel()] if shape.ndim else [-1] * len(found)
    sizes = check_shape(
        [there if size < 0 else size for size, there in zip(wanted, found)], values.itemsize
    )
    ragged = len(all_lengths) + 1
    out = np.empty(sizes, values.dtype)
    out[...] = default
    inner = tuple(map(slice, sizes[ragged:]))
    for place, value in zip(places_of(all_lengths), values):
        if all(index < size for index, size in zip(place, sizes)):
            out[place] = value[inner] if values.ndim > 1 else value
    return out


def row_lengths(kind: bytes, partition: Array, count: int | None) -> Array:
    """Return the number of values in each row."""
    if kind == b"ROW_SPLITS":
        return np.diff(partition)
    if kind != b"VALUE_ROWIDS":
        raise ValueError(f"Unsupported row partition type: {kind.decode()}")
    rows = int(partition[-1]) + 1 if count is None and len(partition) else count or 0
    return np.bincount(partition, minlength=rows)


def places_of(all_lengths: list[Array]) -> list[tuple[int, ...]]:
    """Return the index of each innermost value."""
    places: list[tuple[int, ...]] = [(row,) for row in range(len(all_lengths[0]))]
    for lengths in all_lengths:
        wider = []
        for place, length in zip(places, lengths.tolist()):
            wider += [(*place, column) for column in range(length)]
        places = wider
    return places
