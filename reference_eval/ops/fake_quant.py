"""FakeQuantWithMinMaxArgs, Vars: floats rounded to the steps of a quantized range.

Dtypes: float32.
Accuracy: 1 step of the range.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("FakeQuantWithMinMaxArgs")
def fake_quant_args(
    inputs: Array,
    *,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Array:
    return quantized(inputs, min, max, num_bits, narrow_range)


@op("FakeQuantWithMinMaxVars")
def fake_quant_vars(
    inputs: Array, low: Array, high: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    return quantized(inputs, low.item(), high.item(), num_bits, narrow_range)


def quantized(inputs: Array, low: float, high: float, bits: int, narrow: bool) -> Array:
    """Return values on the grid of a range, which is moved so that 0 is on it."""
    kind = inputs.dtype.type
    least, most = kind(1 if narrow else 0), kind(2**bits - 1)
    scale = (kind(high) - kind(low)) / (most - least)
    zero = least - kind(low) / scale
    zero = np.floor(np.clip(zero, least, most) + kind(0.5))
    first, last = (least - zero) * scale, (most - zero) * scale
    steps = np.floor((np.clip(inputs, first, last) - first) / scale + kind(0.5))
    return np.asarray(steps * scale + first, inputs.dtype)
