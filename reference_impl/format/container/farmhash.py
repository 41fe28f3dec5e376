"""The 64-bit FarmHash fingerprint, which TensorFlow's fingerprint.pb and the public op
`tf.fingerprint` use.

In Python it hashes a few megabytes a second: enough for the graphs of models, not for their weights
(which are not hashed).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_BLOCK = struct.Struct("<8Q")


def fingerprint64(data: bytes) -> int:
    """Return the hash of some bytes."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data)
    if size <= 32:
        return _up_to_32(data)
    if size <= 64:
        return _up_to_64(data)
    return _long(data)


def fingerprints64(items: Iterable[bytes]) -> list[int]:
    """Return the 64-bit FarmHash of each of several byte strings."""
    return [fingerprint64(data) for data in items]


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def mixed(value: int) -> int:
    """Return the 64 low bits of a number, the high ones mixed into the low ones."""
    value &= _MASK
    return value ^ value >> 47


def _joined(first: int, second: int, factor: int) -> int:
    first = mixed(((first ^ second) & _MASK) * factor)
    return mixed(((second & _MASK) ^ first) * factor) * factor & _MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    if size >= 8:
        factor = _K2 + size * 2
        first, last = _word(data, 0) + _K2, _word(data, size - 8)
        return _joined(
            _rotated(last, 37) * factor + first, (_rotated(first, 25) + last) * factor, factor
        )
    if size >= 4:
        start, end = (int.from_bytes(part, "little") for part in (data[:4], data[-4:]))
        return _joined(size + (start << 3), end, _K2 + size * 2)
    if size:
        low, high = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return mixed(low * _K2 ^ high * _K0) * _K2 & _MASK
    return _K2


def _ends(data: bytes, factor: int, first: int) -> tuple[int, int, int]:
    size = len(data)
    a, b = _word(data, 0) * first & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * factor, _word(data, size - 16) * _K2
    return a, _rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c


def _up_to_32(data: bytes) -> int:
    factor = _K2 + len(data) * 2
    _, one, other = _ends(data, factor, _K1)
    return _joined(one, other, factor)


def _up_to_64(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2
    a, y, other = _ends(data, factor, _K2)
    z = _joined(y, other, factor)
    e, f = _word(data, 16) * factor, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * factor, (z + _word(data, size - 24)) * factor
    return _joined(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, factor)


def _long(data: bytes) -> int:
    size = len(data)
    y = 81 * _K1 + 113 & _MASK
    z = mixed(y * _K2 + 113) * _K2 & _MASK
    state = (81 * _K2 + _word(data, 0) & _MASK, y, z, 0, 0, 0, 0)
    rounds = (size - 1) // 64
    for words in _BLOCK.iter_unpack(memoryview(data)[: rounds * 64]):
        state = _round(words, state, _K1, 1)
    x, y, z, v1, v2, w1, w2 = state
    factor = _K1 + ((z & 0xFF) << 1)
    w1 += size - 1 & 63
    v1 += w1
    w1 += v1
    x, y, z, v1, v2, w1, w2 = _round(
        _BLOCK.unpack(data[-64:]), (x, y, z, v1 & _MASK, v2, w1 & _MASK, w2), factor, 9
    )
    one = _joined(v1, w1, factor) + mixed(y) * _K0 + z
    return _joined(one, _joined(v2, w2, factor) + x, factor)


_State = tuple[int, int, int, int, int, int, int]


def _round(words: tuple[int, ...], state: _State, factor: int, weight: int) -> _State:
    """Mix in a block of 64 bytes.

    Sums are cut to 64 bits only where their high bits would matter (rotation, xor).
    """
    x, y, z, v1, v2, w1, w2 = state
    s0, s1, s2, s3, s4, s5, s6, s7 = words
    x = x + y + v1 + s1 & _MASK
    x = ((x >> 37 | x << 27) & _MASK) * factor & _MASK
    y = y + v2 + s6 & _MASK
    y = ((y >> 42 | y << 22) & _MASK) * factor & _MASK
    x ^= w2 * weight & _MASK
    y = y + v1 * weight + s5 & _MASK
    z = z + w1 & _MASK
    z = ((z >> 33 | z << 31) & _MASK) * factor & _MASK
    a = v2 * factor + s0 & _MASK
    b = x + w1 + a + s3 & _MASK
    c = a
    a = a + s1 + s2 & _MASK
    b = (b >> 21 | b << 43) & _MASK
    b += (a >> 44 | a << 20) & _MASK
    v1, v2 = a + s3 & _MASK, b + c & _MASK
    a = z + w2 + s4 & _MASK
    b = y + s2 + a + s7 & _MASK
    c = a
    a = a + s5 + s6 & _MASK
    b = (b >> 21 | b << 43) & _MASK
    b += (a >> 44 | a << 20) & _MASK
    return z, y, x, v1, v2, a + s7 & _MASK, b + c & _MASK
