"""TensorListConcat, V2: the elements joined along their first axis, and their lengths.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListConcatV2")
def tensor_list_concat(values: TensorList, shape: Array, leading: Array) -> tuple[Array, Array]:
    return concatenated(values)


@op("TensorListConcat")
def tensor_list_concat_v1(values: TensorList) -> tuple[Array, Array]:
    return concatenated(values)


def concatenated(values: TensorList) -> tuple[Array, Array]:
    """Return the joined elements and their lengths."""
    parts = [element for element in values.elements if element is not None]
    lengths = np.asarray([len(part) for part in parts], np.int64)
    if not parts:
        shape = [max(size, 0) for size in values.shape or ()]
        return np.empty([0, *shape[1:]], values.dtype), lengths
    return np.concatenate(parts), lengths
