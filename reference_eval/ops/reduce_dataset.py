"""ReduceDataset: the last state of a function that is called with each element.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.datasets import Dataset
from reference_eval.executor import Call
from reference_eval.reading import FunctionName
from reference_eval.registry import op


@op("ReduceDataset")
def reduce_dataset(
    dataset: Dataset, first: list[Any], arguments: list[Any], *, f: FunctionName, call: Call
) -> list[Any]:
    state = first
    for element in dataset:
        state = call.function(f, [*state, *element, *arguments])
    return state
