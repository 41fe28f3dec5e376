"""MapDataset: the results of a function for each element.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.datasets import Dataset, Elements
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("MapDataset")
def map_dataset(dataset: Dataset, arguments: list[Any], *, f: FunctionName, call: Call) -> Dataset:
    def elements() -> Elements:
        for element in dataset:
            yield call.function(f, [*element, *arguments])

    return dataset.then(elements)
