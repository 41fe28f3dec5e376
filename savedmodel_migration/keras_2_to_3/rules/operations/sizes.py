"""Sizes of tensors: ``tf.shape`` and what is computed of it, while a model is built.

`keras.ops` has no tensor for the shape of a tensor. A size that is known becomes a number. One that
is not known, as that of a batch, may only go into a shape, where it is inferred.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from savedmodel_migration.keras_2_to_3.refused import Refused

COMPUTED = "a shape that is computed"


@dataclass(frozen=True)
class Unknown:
    """A size that is not known while the model is built; ``batch``: the first one of a tensor,
    which all have in common.
    """

    batch: bool = False


Size = Union[int, float, Unknown]


@dataclass(frozen=True)
class Sizes:
    """A shape, or with ``scalar`` one size of it."""

    values: tuple[Size, ...]
    scalar: bool = False

    def known(self) -> Any:
        """Return the number or the tuple of numbers. Raises Refused if one is not known."""
        if any(isinstance(value, Unknown) for value in self.values):
            raise Refused(COMPUTED)
        return self.values[0] if self.scalar else self.values

    def item(self, key: Any) -> Sizes:
        """Return the sizes that an index selects."""
        found = self.values[key]
        return Sizes(found) if isinstance(found, tuple) else Sizes((found,), scalar=True)

    def gathered(self, indices: int | Sequence[int]) -> Sizes:
        """Return the sizes at some places. Raises Refused for places that it does not have."""
        places = [indices] if isinstance(indices, int) else [int(place) for place in indices]
        if not all(-len(self.values) <= place < len(self.values) for place in places):
            raise Refused(COMPUTED)
        return Sizes(
            tuple([self.values[place] for place in places]), scalar=isinstance(indices, int)
        )

    def product(self) -> Sizes:
        """Return the number of elements in a part of these sizes."""
        if len(self.values) == 1:
            return Sizes(self.values, scalar=True)  # the batch is still the batch
        numbers = [value for value in self.values if not isinstance(value, Unknown)]
        known = len(numbers) == len(self.values)
        return Sizes((math.prod(numbers) if known else Unknown(),), scalar=True)


def sizes_of(tensor: Any) -> Sizes:
    """Return the shape of a tensor of the new model. Raises Refused if its rank is not known."""
    shape = getattr(tensor, "shape", None)
    if shape is None:
        raise Refused(COMPUTED)
    return Sizes(
        tuple(
            [
                Unknown(batch=not axis) if size is None else int(size)
                for axis, size in enumerate(shape)
            ]
        )
    )


def joined(items: Any) -> Sizes:
    """Return the list of all sizes in a list of sizes, numbers and lists of them.

    Raises Refused for anything else.
    """
    return Sizes(tuple(_flat(items)))


def _flat(items: Any) -> Iterator[Size]:
    if isinstance(items, Sizes):
        yield from items.values
    elif isinstance(items, (list, tuple)):
        for item in items:
            yield from _flat(item)
    elif isinstance(items, (int, float)):
        yield items
    else:
        raise Refused(COMPUTED)


def target_of(tensor: Any, shape: Any) -> tuple[int, ...]:
    """Return the shape that a tensor is brought into, with -1 for at most one size.

    Raises Refused if more are not known.
    """
    sizes = joined(shape).values
    unknown = [size for size in sizes if isinstance(size, Unknown)]
    if not unknown:
        return tuple([int(size) for size in sizes if not isinstance(size, Unknown)])
    if len(unknown) > 1:
        raise Refused(COMPUTED)
    plain = [-1 if isinstance(size, Unknown) else int(size) for size in sizes]
    if plain.count(-1) == 1:
        return tuple(plain)
    # The batch stays, so what is inferred is what is left of the other sizes.
    before = list(getattr(tensor, "shape", None) or (None, None))
    rest = math.prod([size for size in plain if size != -1])
    if (
        not unknown[0].batch
        or before[0] is not None
        or None in before[1:]
        or not rest
        or math.prod(before[1:]) % rest
    ):
        raise Refused(COMPUTED)
    return tuple(
        [
            -1
            if isinstance(size, Unknown)
            else math.prod(before[1:]) // rest
            if size == -1
            else int(size)
            for size in sizes
        ]
    )


def _two(function: Callable[[Any, Any], Any]) -> Callable[..., Sizes]:
    def fold(one: Any, other: Any) -> Sizes:
        first, second = (joined([item]) for item in (one, other))
        if len(first.values) != 1 or len(second.values) != 1:
            raise Refused(COMPUTED)
        pair = first.values[0], second.values[0]
        scalar = not any(
            isinstance(item, (list, tuple)) or (isinstance(item, Sizes) and not item.scalar)
            for item in (one, other)
        )
        return Sizes(
            (Unknown() if any(isinstance(size, Unknown) for size in pair) else function(*pair),),
            scalar,
        )

    return fold


def _one(function: Callable[[Any], Any]) -> Callable[..., Sizes]:
    def fold(one: Sizes) -> Sizes:
        return Sizes(
            tuple([size if isinstance(size, Unknown) else function(size) for size in one.values]),
            one.scalar,
        )

    return fold


def _cast(x: Sizes, dtype: Any) -> Sizes:
    if str(dtype).startswith(("int", "uint")):
        return _one(int)(x)
    return (
        Sizes((float(x.known()),), scalar=True)
        if x.scalar
        else Sizes(tuple([float(size) for size in x.known()]))
    )


# Functions of TensorFlow that give sizes when they take some -> what they compute.
FOLDS: Mapping[str, Callable[..., Sizes]] = {
    **dict.fromkeys(("math.add", "__operators__.add", "math.add_v2"), _two(lambda a, b: a + b)),
    "math.subtract": _two(lambda a, b: a - b),
    "math.multiply": _two(lambda a, b: a * b),
    "math.floordiv": _two(lambda a, b: a // b),
    "math.truediv": _two(lambda a, b: a / b),
    "math.maximum": _two(max),
    "math.minimum": _two(min),
    "math.sqrt": _one(math.sqrt),
    "cast": _cast,
    "identity": _one(lambda size: size),
}


def folded(name: str, arguments: Sequence[Any]) -> Sizes | None:
    """Return the sizes that a function gives, None if it takes none, or tensors too, or is not one
    of sizes.
    """
    takes = any(isinstance(item, Sizes) for item in arguments)
    plain = all(isinstance(item, (Sizes, int, float, str, list, tuple)) for item in arguments)
    return FOLDS[name](*arguments) if takes and plain and name in FOLDS else None
