"""ReverseSequence: reverses the first elements of each row.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ReverseSequence")
def reverse_sequence(value: Array, lengths: Array, *, seq_dim: int, batch_dim: int = 0) -> Array:
    out = np.moveaxis(value, (batch_dim, seq_dim), (0, 1)).copy()
    for row, length in enumerate(lengths.tolist()):
        out[row, :length] = out[row, :length][::-1]
    return np.moveaxis(out, (0, 1), (batch_dim, seq_dim))
