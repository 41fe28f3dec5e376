"""Datasets of ``tf.data``: a value that gives its elements again for each iteration.

For example, the elements of ``Dataset.range(3).batch(2)`` are the lists ``[array([0, 1])]`` and
``[array([2])]``: one value for each component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reference_eval import sizes
from reference_eval.errors import EvaluationLimitError

Elements = Iterator[list[Any]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The result of an op such as ``RangeDataset``.

    `elements` starts an iteration. `depth` counts the datasets that this one is made of.
    """

    elements: Callable[[], Elements]
    depth: int = 1

    def __iter__(self) -> Elements:
        return self.elements()

    def then(self, elements: Callable[[], Elements]) -> Dataset:
        """Return a dataset whose elements are made of those of this one.

        Raises EvaluationLimitError: too many datasets are made of each other.
        """
        if self.depth >= sizes.DEPTH:
            reason = f"more than {sizes.DEPTH} datasets are made of each other"
            raise EvaluationLimitError(reason, limit="DEPTH")
        return Dataset(elements, self.depth + 1)
