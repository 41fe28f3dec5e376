"""HighwayHash, 64 bits, as the record files of the split format use it.

About a megabyte a second.
"""

from __future__ import annotations

import struct
from typing import Union

_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1
# Digits of pi, fixed by the algorithm.
_INITIAL_0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_INITIAL_1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)


def highwayhash64(key: tuple[int, int, int, int], data: Union[bytes, memoryview]) -> int:
    """Return the hash of `data` under a key of four 64-bit integers."""
    state = _State(key)
    whole = len(data) // 32 * 32
    for lanes in struct.iter_unpack("<4Q", data[:whole]):
        state.update(lanes)
    if len(data) > whole:
        state.update_remainder(bytes(data[whole:]))
    return state.finish()


class _State:
    def __init__(self, key: tuple[int, int, int, int]) -> None:
        self.mul0, self.mul1 = list(_INITIAL_0), list(_INITIAL_1)
        self.v0 = [initial ^ lane for initial, lane in zip(_INITIAL_0, key)]
        self.v1 = [initial ^ _swap_halves(lane) for initial, lane in zip(_INITIAL_1, key)]

    def update(self, lanes: tuple[int, ...]) -> None:
        v0, v1, mul0, mul1 = self.v0, self.v1, self.mul0, self.mul1
        for i in range(4):
            v1[i] = (v1[i] + mul0[i] + lanes[i]) & _MASK
            mul0[i] ^= (v1[i] & _LOW) * (v0[i] >> 32)
            v0[i] = (v0[i] + mul1[i]) & _MASK
            mul1[i] ^= (v0[i] & _LOW) * (v1[i] >> 32)
        for source, target in ((v1, v0), (v0, v1)):
            for low in (0, 2):
                add_low, add_high = _zipper(source[low], source[low + 1])
                target[low] = (target[low] + add_low) & _MASK
                target[low + 1] = (target[low + 1] + add_high) & _MASK

    def update_remainder(self, rest: bytes) -> None:
        """Mix in the last 1 to 31 bytes."""
        size = len(rest)
        self.v0 = [(lane + (size << 32) + size) & _MASK for lane in self.v0]
        self.v1 = [_rotate(lane >> 32, size) << 32 | _rotate(lane & _LOW, size) for lane in self.v1]
        whole, loose = size & ~3, size & 3
        packet = bytearray(32)
        packet[:whole] = rest[:whole]
        if size & 16:
            packet[28:32] = rest[size - 4 :]
        elif loose:
            packet[16:19] = bytes((rest[whole], rest[whole + (loose >> 1)], rest[size - 1]))
        self.update(struct.unpack("<4Q", packet))

    def finish(self) -> int:
        for _ in range(4):
            self.update(tuple(_swap_halves(self.v0[i]) for i in (2, 3, 0, 1)))
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & _MASK


def _swap_halves(lane: int) -> int:
    return lane >> 32 | (lane & _LOW) << 32


def _rotate(half: int, bits: int) -> int:
    return (half << bits | half >> (32 - bits)) & _LOW


def _zipper(low: int, high: int) -> tuple[int, int]:
    """Reorder the 16 bytes of two lanes, so that the strong middle bytes of the products reach
    every place.
    """
    a, b = low.to_bytes(8, "little"), high.to_bytes(8, "little")
    mixed_low = bytes((a[3], b[4], a[2], a[5], b[6], a[1], b[7], a[0]))
    mixed_high = bytes((b[3], a[4], b[2], b[5], b[1], a[6], b[0], a[7]))
    return int.from_bytes(mixed_low, "little"), int.from_bytes(mixed_high, "little")
