"""RangeDataset: the numbers from start to stop, without stop.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.datasets import Dataset, Elements
from reference_eval.executor import Call
from reference_eval.registry import op


@op("RangeDataset")
def range_dataset(
    start: Array, stop: Array, step: Array, *, output_types: list[np.dtype[Any]], call: Call
) -> Dataset:
    if step == 0:
        raise ValueError("step must be a non-zero integer.")
    numbers = range(int(start), int(stop), int(step))

    def elements() -> Elements:
        for number in numbers:
            call.count()
            yield [np.asarray(number, output_types[0])]

    return Dataset(elements)
