"""BatchDatasetV2: several elements together, along a new first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.datasets import Dataset, Elements
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("BatchDatasetV2")
def batch_dataset(dataset: Dataset, batch_size: Array, drop_remainder: Array) -> Dataset:
    size = int(batch_size)
    if size < 1:
        raise ValueError("Batch size must be greater than zero.")

    def elements() -> Elements:
        batch: list[list[Any]] = []
        for element in dataset:
            batch.append(element)
            check_shape([len(batch)], sum(component.nbytes for component in element))
            if len(batch) == size:
                yield stacked(batch)
                batch = []
        if batch and not drop_remainder:
            yield stacked(batch)

    return dataset.then(elements)


def stacked(batch: list[list[Any]]) -> list[Any]:
    """Return the components of several elements. Raises ValueError: their shapes differ."""
    shapes = {tuple(map(np.shape, element)) for element in batch}
    if len(shapes) > 1:
        raise ValueError("Cannot batch tensors with different shapes")
    return [np.stack(components) for components in zip(*batch)]
