"""DynamicPartition: splits rows by the number of their part.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("DynamicPartition")
def dynamic_partition(data: Array, partitions: Array, *, num_partitions: int) -> list[Array]:
    check_indices(partitions, num_partitions)
    return [data[partitions == part] for part in range(num_partitions)]
