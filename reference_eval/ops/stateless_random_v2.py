"""StatelessRandomGetKeyCounter, -GetAlg, -GetKeyCounterAlg, StatelessRandomUniformV2, -IntV2,
-FullIntV2, StatelessShuffle: Philox from a key and a counter; StatelessRandomUniformInt, -FullInt:
the same from a seed, as up to TensorFlow 2.4.

Dtypes: float32, float64; integers of 32 and 64 bits.
Accuracy: exact, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reference_eval import philox
from reference_eval.arrays import Array
from reference_eval.errors import NotEvaluatedError
from reference_eval.ops.stateless_random_uniform import uniform_float32, uniform_float64
from reference_eval.registry import op
from reference_eval.sizes import check_shape

PHILOX, AUTO = 1, 3


@op("StatelessRandomGetKeyCounter")
def get_key_counter(seed: Array) -> tuple[Array, Array]:
    return philox.key_and_counter(seed)


@op("StatelessRandomGetAlg")
def get_alg() -> Array:
    return np.asarray(PHILOX, np.int32)  # the algorithm of a CPU


@op("StatelessRandomGetKeyCounterAlg")
def get_key_counter_alg(seed: Array) -> tuple[Array, Array, Array]:
    return (*philox.key_and_counter(seed), get_alg())


@op("StatelessRandomUniformV2")
def uniform(shape: Array, key: Array, counter: Array, alg: Array, *, dtype: np.dtype[Any]) -> Array:
    if dtype == np.dtype(np.float32):
        return uniform_float32(drawn(shape, key, counter, alg, 1)).reshape(shape)
    if dtype == np.dtype(np.float64):
        return uniform_float64(drawn(shape, key, counter, alg, 2)).reshape(shape)
    raise NotEvaluatedError(f"StatelessRandomUniformV2 is not evaluated for {dtype}")


@op("StatelessRandomUniformFullIntV2")
def uniform_full_int(
    shape: Array, key: Array, counter: Array, alg: Array, *, dtype: np.dtype[Any]
) -> Array:
    return integers(shape, key, counter, alg, dtype).reshape(shape)


@op("StatelessRandomUniformIntV2")
def uniform_int(
    shape: Array, key: Array, counter: Array, alg: Array, low: Array, high: Array
) -> Array:
    if low >= high:
        raise ValueError(f"Need minval < maxval, got {low} >= {high}")
    kind = np.dtype(f"u{low.itemsize}")
    width = np.asarray(int(high) - int(low)).astype(kind)
    words = integers(shape, key, counter, alg, kind) % width
    return (words + low.astype(kind)).astype(low.dtype).reshape(shape)  # wraps around


@op("StatelessRandomUniformInt")
def uniform_int_of_seed(shape: Array, seed: Array, minval: Array, maxval: Array) -> Array:
    return uniform_int(shape, *philox.key_and_counter(seed), np.asarray(PHILOX), minval, maxval)


@op("StatelessRandomUniformFullInt")
def uniform_full_int_of_seed(shape: Array, seed: Array, *, dtype: np.dtype[Any]) -> Array:
    return integers(shape, *philox.key_and_counter(seed), np.asarray(PHILOX), dtype).reshape(shape)


@op("StatelessShuffle")
def shuffle(value: Array, key: Array, counter: Array, alg: Array) -> Array:
    """Swap each row with one of those behind it, as Fisher and Yates do."""
    words = drawn(np.asarray([len(value)]), key, counter, alg, 1)
    order = np.arange(len(value))
    for place in range(len(value) - 1):
        other = place + int(words[place] % np.uint32(len(value) - place))
        order[[place, other]] = order[[other, place]]
    return value[order]


def integers(shape: Array, key: Array, counter: Array, alg: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers of all bits: one word, or two with the low one first."""
    words = drawn(shape, key, counter, alg, dtype.itemsize // 4)
    return words.view(dtype)


def drawn(shape: Array, key: Array, counter: Array, alg: Array, words: int) -> Array:
    """Return the 32-bit words for a shape, `words` of them for each element.

    Raises NotEvaluatedError: the algorithm is ThreeFry.
    """
    if int(alg) not in (PHILOX, AUTO):
        raise NotEvaluatedError(f"the random algorithm {int(alg)} is not evaluated")
    sizes = check_shape(shape.tolist(), 4 * words)
    return philox.words_of(key, counter, words * math.prod(sizes))
