"""The limits of an evaluation, each with its reason.

A program that trusts its models may raise one: `sizes.STEPS = ...`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from reference_eval.errors import EvaluationLimitError

# One tensor. `Fill` of a few bytes can ask for any size.
TENSOR_BYTES = 2**31

# All tensors that are alive in one function call.
LIVE_BYTES = 2**33

# Nodes run by one call of a signature. A `While` whose condition stays true never ends.
STEPS = 10**7

# Functions inside functions. A function may call itself; Python's stack holds a few hundred.
DEPTH = 60


def check_shape(shape: Iterable[int], itemsize: int = 1) -> tuple[int, ...]:
    """Return a shape as a tuple of ints, before anything of this size is allocated.

    Raises:
      EvaluationLimitError: a tensor of this shape would exceed `TENSOR_BYTES`.
      ValueError: a dimension is negative.
    """
    sizes = tuple([int(size) for size in shape])
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape {list(sizes)} has a negative dimension")
    if math.prod(sizes) * itemsize > TENSOR_BYTES:
        reason = f"a tensor of shape {list(sizes)} exceeds the limit of {TENSOR_BYTES} bytes"
        raise EvaluationLimitError(reason, limit="TENSOR_BYTES")
    return sizes
