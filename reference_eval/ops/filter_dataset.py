"""FilterDataset: the elements for which a function returns true.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.datasets import Dataset, Elements
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("FilterDataset")
def filter_dataset(
    dataset: Dataset, arguments: list[Any], *, predicate: FunctionName, call: Call
) -> Dataset:
    def elements() -> Elements:
        for element in dataset:
            if call.function(predicate, [*element, *arguments])[0]:
                yield element

    return dataset.then(elements)
