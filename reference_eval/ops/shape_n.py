"""ShapeN: the sizes of the axes of several tensors.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ShapeN")
def shape_n(values: list[Array], *, out_type: np.dtype[Any]) -> list[Array]:
    return [np.asarray(value.shape, out_type) for value in values]
