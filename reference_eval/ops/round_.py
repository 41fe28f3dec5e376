"""Round, Rint: the nearest integer; halves go to the even one.

Dtypes: numbers.
Accuracy: exact. The kernel of TensorFlow 2.21 gives 0 for every int32 and int64 (`tf.round` never
calls it for integers); here an integer stays itself.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Round", "Rint")
def round_(x: Array) -> Array:
    return np.rint(x) if x.dtype.kind not in "iu" else x
