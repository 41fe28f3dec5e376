"""StringToHashBucketFast: FarmHash's Fingerprint64 modulo the number of buckets.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.reading import fingerprint64
from reference_eval.registry import op


@op("StringToHashBucketFast")
def string_to_hash_bucket_fast(values: Array, *, num_buckets: int) -> Array:
    flat = [fingerprint64(value) % num_buckets for value in values.ravel().tolist()]
    return np.asarray(flat, np.int64).reshape(values.shape)
