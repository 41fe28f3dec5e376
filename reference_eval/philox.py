"""Philox 4x32-10, the counter-based generator of TensorFlow's stateless random ops."""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_ROUNDS = 10


def words(seed: Array, count: int) -> Array:
    """Return `count` random 32-bit words of a stateless op with a seed of two numbers.

    As TensorFlow does, the seed is scrambled by one block first: two of its words are the key, the
    other two the upper half of the counter.
    """
    first, second = [int(part) & (2**64 - 1) for part in seed.tolist()]
    start = np.array([[*_halves(first), *_halves(second)]], np.uint64)
    key = (0x3EC8F720, 0x02461E29)
    mixed = _blocks(start, key)[0].tolist()
    blocks = -(-count // 4)
    counters = np.zeros([blocks, 4], np.uint64)
    counters[:, 0] = np.arange(blocks, dtype=np.uint64)
    counters[:, 2], counters[:, 3] = mixed[2], mixed[3]
    return _blocks(counters, (mixed[0], mixed[1])).ravel()[:count]


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
