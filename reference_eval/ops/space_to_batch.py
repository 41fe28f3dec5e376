"""SpaceToBatchND, BatchToSpaceND: blocks of the axes after the first become its elements.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SpaceToBatchND")
def space_to_batch(value: Array, block: Array, paddings: Array) -> Array:
    count = len(block)
    around = [(0, 0), *map(tuple, paddings.tolist()), *[(0, 0)] * (value.ndim - 1 - count)]
    padded = np.pad(value, around)
    split = [padded.shape[0]]
    for size, step in zip(padded.shape[1 : count + 1], block.tolist()):
        split += [size // step, step]
    apart = padded.reshape([*split, *padded.shape[count + 1 :]])
    blocks = [2 * axis + 2 for axis in range(count)]
    outer = [2 * axis + 1 for axis in range(count)]
    order = [*blocks, 0, *outer, *range(2 * count + 1, apart.ndim)]
    moved = apart.transpose(order)
    return moved.reshape([-1, *moved.shape[count + 1 :]])


@op("BatchToSpaceND")
def batch_to_space(value: Array, block: Array, crops: Array) -> Array:
    count = len(block)
    apart = value.reshape([*block.tolist(), -1, *value.shape[1:]])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    moved = apart.transpose([*order, *range(2 * count + 1, apart.ndim)])
    sizes = [size * step for size, step in zip(value.shape[1 : count + 1], block.tolist())]
    joined = moved.reshape([-1, *sizes, *value.shape[count + 1 :]])
    key = [slice(None)]
    for size, (before, after) in zip(sizes, crops.tolist()):
        key.append(slice(before, size - after))
    return joined[tuple(key)]
