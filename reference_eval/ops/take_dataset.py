"""TakeDataset: the first elements; all for a count of -1.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import itertools

from reference_eval.arrays import Array
from reference_eval.datasets import Dataset
from reference_eval.registry import op


@op("TakeDataset")
def take_dataset(dataset: Dataset, count: Array) -> Dataset:
    most = int(count) if count >= 0 else None
    return dataset.then(lambda: itertools.islice(dataset, most))
