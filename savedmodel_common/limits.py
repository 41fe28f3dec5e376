"""How much of the tolerance that an artifact states counts, per dtype; the largest tensor of a
request.

The artifact is what is judged: with a tolerance of its own choice every answer would be right. So
its statement counts up to a limit. A user who wants more says so on the command line (`check
--tolerance`), with a reason.

The limits are above all that this project allows by itself: 1e-3 and 5e-4, for servers with other
kernels. They also allow two steps of the last place, which are much for a dtype of few bits.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """The largest relative and absolute tolerance that counts for a dtype."""

    rtol: float
    atol: float


# Bits of the fraction of each floating dtype. A complex dtype has the limit of its parts.
FRACTION_BITS = {
    "float64": 52,
    "float32": 23,
    "float16": 10,
    "bfloat16": 7,
    "float8_e4m3fn": 3,
    "float8_e4m3fnuz": 3,
    "float8_e4m3b11fnuz": 3,
    "float8_e5m2": 2,
    "float8_e5m2fnuz": 2,
}
PARTS = {"complex64": "float32", "complex128": "float64"}
_BASE = {"float64": 1e-3}  # of rtol; 1e-2 for every other dtype
_LEAST_ATOL = 5e-4  # what this project allows by itself (`policies.ACROSS_SERVERS`)
_STEPS = 2
MAX_ELEMENTS = 1 << 24  # of one tensor of a request that is made up or recorded


def limit_of(dtype: str) -> Limit:
    """Return the limit of a floating or complex dtype.

    Raises KeyError for another one, which is compared exactly.
    """
    part = PARTS.get(dtype, dtype)
    rtol = max(_BASE.get(part, 1e-2), _STEPS * 2.0 ** -FRACTION_BITS[part])
    return Limit(rtol, max(_LEAST_ATOL, rtol / 10))
