"""SparseFillEmptyRows: adds a default value to rows without one.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    indices: Array, values: Array, shape: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    rows = check_shape(shape[:1].tolist(), 8)[0]
    empty = ~np.isin(np.arange(rows), indices[:, 0])
    added = np.zeros([int(empty.sum()), indices.shape[1]], np.int64)
    added[:, 0] = np.flatnonzero(empty)
    together = np.concatenate([indices, added])
    order = np.argsort(together[:, 0], kind="stable")
    filled = np.concatenate([values, np.full(len(added), default, values.dtype)])
    places = np.argsort(order, kind="stable")[: len(indices)]
    return together[order], filled[order], empty, places.astype(np.int64)
