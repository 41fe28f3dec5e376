"""Cast: another dtype; floats truncate towards 0, and become True unless they are 0.

Dtypes: numbers, bool.
Accuracy: exact in range; out of range as the machine's conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Cast")
def cast(x: Array, *, DstT: np.dtype[Any]) -> Array:
    return x.astype(DstT)
