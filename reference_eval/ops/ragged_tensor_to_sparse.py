"""RaggedTensorToSparse: the indices, values and dense shape of a ragged tensor.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("RaggedTensorToSparse")
def ragged_tensor_to_sparse(
    nested_splits: list[Array], values: Array
) -> tuple[Array, Array, Array]:
    indices = np.argwhere(np.ones(values.shape, bool))  # of each value, innermost part first
    sizes = list(values.shape[1:])
    outer = len(values)
    for splits in reversed(nested_splits):
        if not len(splits) or splits[0] != 0 or np.any(np.diff(splits) < 0):
            raise ValueError("Ragged splits must start at 0 and not decrease")
        lengths = np.diff(splits)
        if splits[-1] != outer:
            raise ValueError("Final value of ragged splits must match the length of the values")
        outer = len(lengths)
        rows = np.repeat(np.arange(outer), lengths)
        places = np.arange(splits[-1]) - np.repeat(splits[:-1], lengths)
        first = indices[:, 0]
        indices = np.column_stack([rows[first], places[first], indices[:, 1:]])
        sizes.insert(0, int(lengths.max(initial=0)))
    shape = np.asarray([outer, *sizes], np.int64)
    return indices.astype(np.int64).reshape(-1, len(shape)), values.reshape(-1), shape
