"""StringJoin: strings side by side, with broadcasting of scalars.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, object_array
from reference_eval.registry import op


@op("StringJoin")
def string_join(values: list[Array], *, separator: bytes = b"") -> Array:
    together = np.broadcast_arrays(*values)
    flat = [separator.join(parts) for parts in zip(*[part.ravel().tolist() for part in together])]
    return object_array(flat, together[0].shape)
