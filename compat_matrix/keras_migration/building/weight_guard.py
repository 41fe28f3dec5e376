"""Weights of layers under construction: no more of them than the checkpoint holds, and no time spent on drawing them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import keras

from compat_matrix.keras_migration.refused import Refused


@contextlib.contextmanager
def guarded(limit: int) -> Iterator[None]:
    """Refuse layers that create more than ``limit`` elements altogether, and create all weights as zeros.

    A configuration is not to be trusted: it may ask for a matrix larger than the memory.
    """
    original = keras.layers.Layer.add_weight
    left = [limit]

    def add_weight(self: Any, shape: Any = None, initializer: Any = None, *args: Any, **kwargs: Any) -> Any:
        sizes = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        left[0] -= math.prod([int(size) for size in sizes])
        if left[0] < 0:
            raise Refused("its configuration asks for more weights than the checkpoint holds")
        return original(self, shape, "zeros", *args, **kwargs)

    keras.layers.Layer.add_weight = add_weight
    try:
        yield
    finally:
        keras.layers.Layer.add_weight = original
