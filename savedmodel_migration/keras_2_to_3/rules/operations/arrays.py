"""Functions of arrays that Keras lacks: they move the elements of one tensor, by constant sizes.

Each becomes a few calls of ``keras.ops``: pad, reshape, transpose, cut, join, choose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations.expression import Expression, Function
from savedmodel_migration.keras_2_to_3.rules.operations.sizes import COMPUTED, Sizes, joined

MOST_PLACES = 1024  # in a block: each becomes a layer
_Pairs = list[tuple[int, int]]


def _blocks(block_shape: Any, pairs: Any, what: str) -> tuple[list[int], _Pairs]:
    """Return the sizes of a block, and a pair of borders for each of its axes. Raises Refused."""
    block = [int(size) for size in _known(block_shape)]
    borders = [
        (int(first), int(last))
        for first, last in map(_known, pairs if isinstance(pairs, (list, tuple)) else ())
    ]
    if (
        len(block) != len(borders)
        or min(block, default=0) < 1
        or min(itertools.chain.from_iterable(borders), default=0) < 0
    ):
        raise Refused(f"blocks of {block} with the {what} {borders}")
    return block, borders


def _known(values: Any) -> Sequence[Any]:
    """Return a constant list of numbers.

    Raises Refused for a tensor, and for sizes that are not known.
    """
    if not isinstance(values, (list, tuple, Sizes)):
        raise Refused(COMPUTED)
    found: Sequence[Any] = Sizes(joined(values).values).known()
    return found


def _places(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the places in a block, row by row.

    Raises Refused for more than the nodes of a graph should be.
    """
    if math.prod(sizes) > MOST_PLACES:
        raise Refused(f"blocks of {list(sizes)}, more than {MOST_PLACES} places")
    return list(itertools.product(*map(range, sizes)))


def _item(tensor: Any, *key: Any) -> Expression:
    """Return a part of a tensor, of each example."""
    return Expression("get_item", {"x": tensor, "key": (slice(None), *key)})


def _space_to_batch(input: Any, block_shape: Any, paddings: Any) -> Expression:
    """Return the blocks of a padded tensor as examples, sorted by place in the block, then by
    example.
    """
    block, pads = _blocks(block_shape, paddings, "paddings")
    rest = len(input.shape) - 1 - len(block)
    if rest < 0:
        raise Refused(f"blocks of {len(block)} axes of a tensor of rank {len(input.shape)}")
    padded = Expression("pad", {"x": input, "pad_width": ((0, 0), *pads, *[(0, 0)] * rest)})

    def part(place: Sequence[int]) -> Expression:
        return _item(padded, *[slice(start, None, step) for start, step in zip(place, block)])

    return Expression("concatenate", {"xs": list(map(part, _places(block))), "axis": 0})


def _batch_to_space(input: Any, block_shape: Any, crops: Any) -> Expression:
    """Return the examples that `_space_to_batch` makes as blocks of one tensor, without its
    borders.
    """
    block, borders = _blocks(block_shape, crops, "crops")
    count, sizes = len(block), list(input.shape[1:])
    if len(sizes) < count or any(size is None for size in sizes):
        raise Refused(COMPUTED)
    whole = [size * step for size, step in zip(sizes, block)]
    if any(first + last > size for (first, last), size in zip(borders, whole)):
        raise Refused(f"crops of {borders} from sizes of {whole}")
    pairs = [(count + 1 + axis, axis) for axis in range(count)]
    axes = (count, *itertools.chain(*pairs), *range(2 * count + 1, count + 1 + len(sizes)))
    apart = Expression("reshape", {"x": input, "newshape": (*block, -1, *sizes)})
    moved = Expression("transpose", {"x": apart, "axes": axes})
    found = Expression("reshape", {"x": moved, "newshape": (-1, *whole, *sizes[count:])})
    return _item(found, *[slice(first, size - last) for (first, last), size in zip(borders, whole)])


def _patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: Any) -> Expression:
    """Return the patches of images. The last axis holds the elements of a patch, row by row."""
    lengths = list(images.shape[1:3])
    if len(images.shape) != 4 or None in lengths or padding not in ("SAME", "VALID"):
        raise Refused(f"patches of images of {lengths} with padding={padding}")
    windows = [list(map(int, _known(given))) for given in (sizes, strides, rates)]
    if any(
        len(given) != 4 or given[0] != 1 or given[3] != 1 or min(given) < 1 for given in windows
    ):
        raise Refused(f"patches of {windows}")
    kernel, steps, gaps = (given[1:3] for given in windows)
    reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, gaps)]
    lost = 1 if padding == "SAME" else 0
    counts = [
        -(-size // step) if lost else (size - far) // step + 1
        for size, step, far in zip(lengths, steps, reach)
    ]
    if min(counts) < 1:
        raise Refused(f"patches of {windows} of images of {lengths}")
    more = [
        max((n - 1) * step + far - size, 0) * lost
        for n, step, far, size in zip(counts, steps, reach, lengths)
    ]
    pads = ((0, 0), *((size // 2, size - size // 2) for size in more), (0, 0))
    padded = Expression("pad", {"x": images, "pad_width": pads})

    def part(place: Sequence[int]) -> Expression:
        starts = [at * gap for at, gap in zip(place, gaps)]
        return _item(
            padded,
            *[
                slice(at, at + (n - 1) * step + 1, step)
                for at, n, step in zip(starts, counts, steps)
            ],
        )

    return Expression("concatenate", {"xs": [part(place) for place in _places(kernel)], "axis": -1})


def _diagonal_of(row: Any, size: Any, others: Any) -> Expression:
    """Return square matrices with a vector on the main diagonal.

    A product with ones and zeros would make NaN of infinities.
    """
    if size is None:
        raise Refused(COMPUTED)
    spread = Expression("expand_dims", {"x": row, "axis": -2})
    return Expression(
        "where", {"condition": np.eye(int(size), dtype=bool), "x1": spread, "x2": others}
    )


def _matrix(
    diagonal: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0
) -> Expression:
    size = diagonal.shape[-1]
    if k not in (0, [0]) or {num_rows, num_cols} - {-1, size} or padding_value != 0:
        raise Refused("a diagonal beside the main one, or of a matrix that is not square")
    return _diagonal_of(diagonal, size, np.zeros((), str(diagonal.dtype)))


def _with_diagonal(input: Any, diagonal: Any, k: Any = 0) -> Expression:
    rows, columns = input.shape[-2:]
    if k not in (0, [0]) or rows != columns:
        raise Refused("a diagonal beside the main one, or of a matrix that is not square")
    return _diagonal_of(diagonal, rows, input)


_SPACE_TO_BATCH = Function("input block_shape paddings", _space_to_batch)
FUNCTIONS = {
    **dict.fromkeys(("space_to_batch", "space_to_batch_nd", "nn.space_to_batch"), _SPACE_TO_BATCH),
    **dict.fromkeys(
        ("batch_to_space", "batch_to_space_nd"),
        Function("input block_shape crops", _batch_to_space),
    ),
    "image.extract_patches": Function("images sizes strides rates padding", _patches),
    "linalg.diag": Function(
        "diagonal k num_rows num_cols padding_value", _matrix, align="RIGHT_LEFT"
    ),
    "linalg.set_diag": Function("*input *diagonal k", _with_diagonal, align="RIGHT_LEFT"),
}
