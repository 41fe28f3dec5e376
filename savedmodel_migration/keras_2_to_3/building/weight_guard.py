"""Limits of what a configuration may ask for: weights that the checkpoint holds, tensors that fit
into memory.

The weights of layers under construction are made as zeros, and no time is spent on drawing them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import keras

from savedmodel_migration.keras_2_to_3.refused import Refused

LARGEST = 1 << 30  # elements of a tensor for one example: 4 GB of float32


@contextlib.contextmanager
def guarded(limit: int) -> Iterator[None]:
    """Refuse layers that create more than ``limit`` elements altogether, and create all weights as
    zeros.

    A configuration is not to be trusted: it may ask for a matrix larger than the memory.
    """
    original = keras.layers.Layer.add_weight
    left = [limit]

    def add_weight(
        self: Any, shape: Any = None, initializer: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
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


def refuse_large_tensors(model: Any) -> None:
    """Refuse a model with a layer that takes or returns more elements for each example than memory
    holds.

    An argument as `n` of `RepeatVector` costs a file nothing, and the first prediction all memory.
    """
    for owner in [model, *model._flatten_layers()]:
        network = getattr(
            owner, "_functional", owner
        )  # a Sequential model has a functional one inside
        for node in itertools.chain.from_iterable(getattr(network, "_nodes_by_depth", {}).values()):
            for tensor in keras.tree.flatten(node.output_tensors):
                if math.prod(size for size in tensor.shape if size is not None) > LARGEST:
                    layer = node.operation
                    reason = (
                        f"its output has the shape {tuple(tensor.shape)}, which is more than memory"
                        " holds"
                    )
                    raise Refused(reason, f"{type(layer).__name__} {layer.name!r}")
