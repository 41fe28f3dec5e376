"""MergeV2Checkpoints, ShardedFilename: names of checkpoint files while a model is saved.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ShardedFilename")
def sharded_filename(basename: Array, shard: Array, count: Array) -> Array:
    text = b"%s-%05d-of-%05d" % (basename.item(), int(shard), int(count))
    return np.asarray(text, object)
