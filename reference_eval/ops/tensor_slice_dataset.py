"""TensorSliceDataset, TensorDataset: the slices of tensors along their first axis; the tensors.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.datasets import Dataset, Elements
from reference_eval.executor import Call
from reference_eval.registry import op


@op("TensorSliceDataset")
def tensor_slice_dataset(components: list[Array], *, call: Call) -> Dataset:
    lengths = {component.shape[0] if component.ndim else -1 for component in components}
    if len(lengths) != 1 or -1 in lengths:
        shapes = [list(component.shape) for component in components]
        raise ValueError(f"the components have no common first axis: {shapes}")

    def elements() -> Elements:
        for number in range(max(lengths)):
            call.count()
            yield [component[number, ...] for component in components]

    return Dataset(elements)


@op("TensorDataset")
def tensor_dataset(components: list[Any]) -> Dataset:
    return Dataset(lambda: iter([components]))
