"""StatelessRandomUniform: Philox 4x32-10 from a seed of two numbers, in [0, 1).

Dtypes: float32, float64.
Accuracy: exact, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reference_eval import philox
from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("StatelessRandomUniform")
def stateless_random_uniform(shape: Array, seed: Array, *, dtype: np.dtype[Any]) -> Array:
    sizes = check_shape(shape.tolist(), 8)
    count = math.prod(sizes)
    if dtype == np.dtype(np.float32):
        return uniform_float32(philox.words(seed, count)).reshape(sizes)
    if dtype == np.dtype(np.float64):
        return uniform_float64(philox.words(seed, 2 * count)).reshape(sizes)
    raise ValueError(f"StatelessRandomUniform is not evaluated for {dtype}")


def uniform_float32(words: Array) -> Array:
    """Return numbers in [0, 1): the low 23 bits of a word are a mantissa."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)


def uniform_float64(words: Array) -> Array:
    """Return numbers in [0, 1): 20 bits of the first word and the second are a mantissa."""
    high = (words[0::2] & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32)
    bits = high | words[1::2].astype(np.uint64) | np.uint64(1023 << 52)
    return bits.view(np.float64) - 1.0
