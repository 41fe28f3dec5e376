"""Philox 4x32-10, the counter-based generator of TensorFlow's stateless random ops."""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_ROUNDS = 10


def words(seed: Array, count: int) -> Array:
    """Return `count` random 32-bit words of a stateless op with a seed of two numbers."""
    return words_of(*key_and_counter(seed), count)


def key_and_counter(seed: Array) -> tuple[Array, Array]:
    """Return the key (one number) and the counter (two) of a seed.

    As TensorFlow does, the seed is scrambled by one block first: two of its words are the key, the
    other two the upper half of the counter.
    """
    first, second = [int(part) & (2**64 - 1) for part in seed.tolist()]
    start = np.array([[*_halves(first), *_halves(second)]], np.uint64)
    key = (0x3EC8F720, 0x02461E29)
    mixed = _blocks(start, key)[0].tolist()
    whole = np.asarray([mixed[0] | mixed[1] << 32], np.uint64)
    return whole, np.asarray([0, mixed[2] | mixed[3] << 32], np.uint64)


def words_of(key: Array, counter: Array, count: int) -> Array:
    """Return `count` random 32-bit words: the blocks of a counter and of those after it."""
    low, high = [int(part) for part in counter.tolist()[:2]]
    blocks = -(-count // 4)
    counters = np.empty([blocks, 4], np.uint64)
    lows = np.uint64(low) + np.arange(blocks, dtype=np.uint64)  # wraps around
    highs = np.uint64(high) + (lows < np.uint64(low)).astype(np.uint64)
    counters[:, 0], counters[:, 1] = lows & _LOW, lows >> np.uint64(32)
    counters[:, 2], counters[:, 3] = highs & _LOW, highs >> np.uint64(32)
    return _blocks(counters, _halves(int(key.ravel()[0]))).ravel()[:count]


def _halves(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


def _blocks(counters: Array, key: tuple[int, int]) -> Array:
    """Return the four words of each counter (rows of four words) under a key."""
    first, second, third, fourth = counters.T
    low_key, high_key = key
    for _ in range(_ROUNDS):
        left, right = first * _MULTIPLIERS[0], third * _MULTIPLIERS[1]
        first, second, third, fourth = (
            (right >> np.uint64(32)) ^ second ^ np.uint64(low_key),
            right & _LOW,
            (left >> np.uint64(32)) ^ fourth ^ np.uint64(high_key),
            left & _LOW,
        )
        low_key, high_key = (low_key + _WEYL[0]) % 2**32, (high_key + _WEYL[1]) % 2**32
    return np.stack([first, second, third, fourth], axis=1).astype(np.uint32)
