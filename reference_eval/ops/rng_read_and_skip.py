"""RngReadAndSkip: the state of a generator, which then moves on.

Dtypes: int64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.errors import NotEvaluatedError
from reference_eval.registry import op
from reference_eval.state import Variable

PHILOX = 1
SAMPLES = 256  # of the counter for each step of `delta`
_MASK = 2**64 - 1


@op("RngReadAndSkip")
def rng_read_and_skip(variable: Variable, alg: Array, delta: Array) -> Array:
    if int(alg) != PHILOX:
        raise NotEvaluatedError(f"the random algorithm {int(alg)} is not evaluated")
    if variable.value is None:
        raise ValueError(f"the variable {variable.name!r} has no value: {variable.why_empty}")
    before = variable.value
    low, high, *key = [int(part) & _MASK for part in before.tolist()]
    counter = (low | high << 64) + (int(delta) * SAMPLES & _MASK)
    after = [counter & _MASK, counter >> 64 & _MASK, *key]
    variable.value = np.asarray(after, np.uint64).astype(np.int64)
    return before
