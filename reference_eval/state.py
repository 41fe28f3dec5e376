"""Values that are not arrays: variables, tables, tensor lists and optional values."""

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

    `markers` are the keys that mean an empty or deleted bucket of a dense table.
    """

    key_dtype: np.dtype[Any]
    value_dtype: np.dtype[Any]
    mutable: bool = False
    items: dict[Any, Any] = field(default_factory=dict)
    filled: bool = False
    markers: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors, never changed in place; None is an element that was not set.

    `shape` is the shape of an element, -1 for an unknown dimension, None for an unknown rank.
    """

    dtype: np.dtype[Any]
    shape: Optional[tuple[int, ...]]
    elements: tuple[Optional[npt.NDArray[Any]], ...] = ()


@dataclass(frozen=True, eq=False)
class OptionalValue:
    """The result of ``OptionalFromValue``; `components` is None for an absent value."""

    components: Optional[tuple[Any, ...]]
