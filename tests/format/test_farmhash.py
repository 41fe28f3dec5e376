"""The hash of fingerprint.pb, against values that TensorFlow's public op `tf.fingerprint` gave."""

import pytest

from reference_impl.format.container.farmhash import fingerprint64

KNOWN = {
    0: 0x9AE16A3B2F90404F,
    1: 0x47A24C13B17E583E,
    3: 0x6017E3A2B006F5B3,
    4: 0xC86438D9811203C3,
    7: 0xD2F667FA8A96E483,
    8: 0xA168F66EB58EDF98,
    16: 0x7974E20AF29CE324,
    17: 0xE900C4E03F21BB72,
    32: 0x8EA5615366B1BA0F,
    33: 0x26BF59B4C57403F7,
    64: 0xDBDFC491B3A463FE,
    65: 0xFF096A8943EC5862,
    128: 0x112DE50A2FF48D3B,
    1000: 0x793879819F0B6C30,
}  # of bytes (i * i * 7 + size) % 256


@pytest.mark.parametrize("size", KNOWN)
def test_the_hash_is_that_of_tensorflow(size):
    assert fingerprint64(bytes((i * i * 7 + size) % 256 for i in range(size))) == KNOWN[size]
