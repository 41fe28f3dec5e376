"""MirrorPad: reflects a tensor at its edges, with (SYMMETRIC) or without the edge itself.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("MirrorPad")
def mirror_pad(value: Array, paddings: Array, *, mode: bytes) -> Array:
    return np.pad(value, paddings.tolist(), mode="reflect" if mode == b"REFLECT" else "symmetric")
