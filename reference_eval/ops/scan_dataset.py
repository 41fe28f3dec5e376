"""ScanDataset: the results of a function that also passes a state to its next call.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.datasets import Dataset, Elements
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("ScanDataset")
def scan_dataset(
    dataset: Dataset, first: list[Any], arguments: list[Any], *, f: FunctionName, call: Call
) -> Dataset:
    def elements() -> Elements:
        state = first
        for element in dataset:
            results = call.function(f, [*state, *element, *arguments])
            state = results[: len(first)]
            yield results[len(first) :]

    return dataset.then(elements)
