"""Values that are not arrays: variables, tables, tensor lists, tensor arrays, stacks and optional
values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt


@dataclass(eq=False)
class Variable:
    """A resource variable. `value` is None until the restore or the init op assigns it.

    `why_empty` is the reason why an assignment of the restore could not run, if there is one.
    """

    name: str
    dtype: np.dtype[Any]
    value: Optional[npt.NDArray[Any]] = None
    why_empty: str = ""


@dataclass(eq=False)
class Table:
    """A hash table: `mutable` tables may be filled more than once.

    `markers` are the keys that mean an empty or deleted bucket of a dense table. `why_empty` is the
    reason why the init op could not run, if there is one.
    """

    key_dtype: np.dtype[Any]
    value_dtype: np.dtype[Any]
    mutable: bool = False
    items: dict[Any, Any] = field(default_factory=dict)
    filled: bool = False
    markers: tuple[Any, ...] = ()
    why_empty: str = ""


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors, never changed in place; None is an element that was not set.

    `shape` is the shape of an element, -1 for an unknown dimension, None for an unknown rank.
    `nbytes` is the size of all elements. An op that changes one element passes it, so that a loop
    does not add up its whole list in each iteration; else it is computed.
    """

    dtype: np.dtype[Any]
    shape: Optional[tuple[int, ...]]
    elements: tuple[Optional[npt.NDArray[Any]], ...] = ()
    nbytes: int = -1

    def __post_init__(self) -> None:
        if self.nbytes < 0:
            object.__setattr__(self, "nbytes", sum(map(size_of, self.elements)))


@dataclass(eq=False)
class TensorArray:
    """The array of a loop of TF 1.x, changed in place; None is an element that was not written.

    `shape` is as of a `TensorList`; with `is_uniform` the first write decides it. `shapes` has
    the shapes of written elements, and in an array of gradients those of the elements of its array.
    `cleared` has the elements that a read removed. An array of gradients `adds` what is written
    twice; `gradients` has the arrays of gradients of this one, by their source.
    """

    dtype: np.dtype[Any]
    shape: Optional[tuple[int, ...]]
    elements: list[Optional[npt.NDArray[Any]]]
    grows: bool = False
    clears: bool = False
    adds: bool = False
    is_uniform: bool = False
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cleared: set[int] = field(default_factory=set)
    gradients: dict[bytes, TensorArray] = field(default_factory=dict)


@dataclass(eq=False)
class Stack:
    """The values that a loop of TF 1.x keeps for its gradients, changed in place."""

    dtype: np.dtype[Any]
    most: int
    elements: list[npt.NDArray[Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class OptionalValue:
    """The result of ``OptionalFromValue``; `components` is None for an absent value."""

    components: Optional[tuple[Any, ...]]


def size_of(value: Any) -> int:
    """Return the bytes of a value: of an array, or of all tensors in a list or optional value."""
    if isinstance(value, (np.ndarray, TensorList)):
        return value.nbytes
    if isinstance(value, OptionalValue):
        return sum(map(size_of, value.components or ()))
    return 0
