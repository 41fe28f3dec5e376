"""The measures of two tensors of one shape.

Few floats are measured without NumPy, which takes longer to import.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Optional

from savedmodel_tools.comparison.model import Options

FEW = 1 << 12  # elements; for more NumPy is worth its import
_BITS = {"float32": ("f", "i"), "float64": ("d", "q")}  # how struct spells numbers, and their bits


class Measures:
    """The distance of two tensors of one shape.

    Attributes:
      differing: elements whose bits differ.
      beyond: those of them that are not within the tolerance.
      same_value: differing elements of one value: zeros of either sign, NaNs of other bits.
      new_nan, gone_nan, new_inf, gone_inf: differing elements that became, or were, NaN or
        infinite.
      max_abs, max_abs_at, max_rel, max_ulp: over differing elements that are finite on both sides.
        Relative is to the larger of the two. None where there is none, or where the type has no
        such thing.
      first: flat index, value and value of the first element that differs.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.differing = self.beyond = self.same_value = 0
        self.new_nan = self.gone_nan = self.new_inf = self.gone_inf = 0
        self.max_abs: Optional[float] = None
        self.max_abs_at: Optional[int] = None
        self.max_rel: Optional[float] = None
        self.max_ulp: Optional[int] = None
        self.first: Optional[tuple[int, str, str]] = None


class Few:
    """Measures tensors of few finite floats, until it is many altogether."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.left = FEW

    def measures(self, dtype: str, one: bytes, other: bytes) -> Optional[Measures]:
        """Return the measures of two tensors, given all of their bytes; None if NumPy must measure
        them.
        """
        if dtype not in _BITS or len(one) > 8 * self.left:
            return None
        code, bits = _BITS[dtype]
        count = len(one) // struct.calcsize(code)
        left, right = [struct.unpack(f"={count}{code}", side) for side in (one, other)]
        if count > self.left or not all(map(math.isfinite, left + right)):
            return None
        self.left -= count
        places = [struct.unpack(f"={count}{bits}", side) for side in (one, other)]
        found = Measures(self.options)
        for at in [at for at in range(count) if places[0][at] != places[1][at]]:
            _add(found, at, (left[at], right[at]), (places[0][at], places[1][at]), dtype)
        return found


def _add(
    found: Measures, at: int, pair: tuple[float, float], bits: Sequence[int], dtype: str
) -> None:
    x, y = pair
    if found.first is None:
        text = shortest if dtype == "float32" else repr
        found.first = at, text(x), text(y)
    found.differing += 1
    if x == y:
        found.same_value += 1
        found.beyond += found.options.exact
        return
    apart, larger, steps = (
        abs(x - y),
        max(abs(x), abs(y)),
        abs(_rank(bits[0], dtype) - _rank(bits[1], dtype)),
    )
    if found.max_abs is None or apart > found.max_abs:
        found.max_abs, found.max_abs_at = apart, at
    if math.isfinite(apart / larger):
        found.max_rel = max(found.max_rel or 0.0, apart / larger)
    found.max_ulp = max(found.max_ulp or 0, steps)
    rtol, atol, ulps = found.options.rtol, found.options.atol, found.options.ulps
    near = (ulps is not None and steps <= ulps) or (
        (rtol is not None or atol is not None) and apart <= (atol or 0) + (rtol or 0) * larger
    )
    found.beyond += not near


def _rank(bits: int, dtype: str) -> int:
    """Return a float as an integer such that neighbouring floats become neighbouring integers."""
    return bits if bits >= 0 else -(bits & ((1 << (8 * struct.calcsize(_BITS[dtype][1]) - 1)) - 1))


def shortest(value: float) -> str:
    """Return the shortest decimal that is read as this float32."""
    texts = [repr(float(f"{value:.{length}g}")) for length in range(1, 10)]
    return next(
        (
            text
            for text in texts
            if struct.pack("d", _float32(float(text))) == struct.pack("d", value)
        ),
        repr(value),
    )


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf
