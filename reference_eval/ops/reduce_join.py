"""ReduceJoin: joins strings along axes.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, axes_of, object_array
from reference_eval.registry import op


@op("ReduceJoin")
def reduce_join(
    values: Array, axes: Array, *, keep_dims: bool = False, separator: bytes = b""
) -> Array:
    over = axes_of(axes, values) if axes.size else tuple(range(values.ndim))
    out = values
    for axis in over:
        moved = np.moveaxis(out, axis, -1)
        flat = [separator.join(row) for row in moved.reshape(-1, moved.shape[-1]).tolist()]
        out = np.expand_dims(object_array(flat, moved.shape[:-1]), axis)
    return (
        out if keep_dims else out.reshape([n for at, n in enumerate(out.shape) if at not in over])
    )
