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
    columns = [part.ravel().tolist() for part in together]
    flat = [separator.join(parts) for parts in zip(*columns)]
    return object_array(flat, together[0].shape)
