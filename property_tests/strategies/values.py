"""Tensors as plain data, with the source that makes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

from hypothesis import strategies as st

Shape = tuple[Optional[int], ...]

# The integers are small and the floats multiples of a half, so that sums and products are exact in
# every order.
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
COUNTABLE = (*FLOATS, *INTEGERS, *COMPLEX, "bool", "string")
# Quantised numbers are other numbers by name only.
QUANTISED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}


@dataclass(frozen=True)
class Value:
    """A constant: ``items`` are those of the flattened tensor."""

    dtype: str
    shape: tuple[int, ...]
    items: tuple[object, ...]

    def source(self) -> str:
        dtype = QUANTISED.get(self.dtype, self.dtype)
        items = [_source(item) for item in self.items]
        data = items[0] if not self.shape else f"[{', '.join(items)}]"
        shape = "" if len(self.shape) < 2 and self.items else f", shape={list(self.shape)}"
        made = f"tf.constant({data}, tf.{dtype}{shape})"
        return made if dtype == self.dtype else f"tf.bitcast({made}, tf.{self.dtype})"


def _source(item: object) -> str:
    if isinstance(item, float) and not math.isfinite(item):
        return f'float("{item}")'
    return repr(item)


def _items(dtype: str, special: bool) -> st.SearchStrategy[object]:
    if dtype in FLOATS:
        plain = st.integers(-6, 6).map(lambda number: number / 2)
        return (
            st.one_of(plain, st.sampled_from([float("nan"), float("inf"), -0.0, 1e-3]))
            if special
            else plain
        )
    if dtype in COMPLEX:
        return st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(lambda parts: complex(*parts))
    if dtype == "bool":
        return st.booleans()
    if dtype == "string":
        return st.one_of(
            st.binary(max_size=4),
            st.sampled_from([b"\x00", b"\xff\xfe", "größe".encode(), b"x" * 40]),
        )
    dtype = QUANTISED.get(dtype, dtype)
    low = 0 if dtype.startswith("u") else -5
    if not special:
        return st.integers(low, 5)
    bits = int(dtype.lstrip("uint"))
    limits = [0, 2**bits - 1] if low == 0 else [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    return st.one_of(st.integers(low, 5), st.sampled_from(limits))


def shapes(max_dims: int = 2) -> st.SearchStrategy[tuple[int, ...]]:
    """Static shapes, 0-d and empty ones included."""
    return st.lists(st.integers(0, 3), max_size=max_dims).map(tuple)


@st.composite
def values(
    draw: st.DrawFn,
    dtypes: tuple[str, ...] = COUNTABLE,
    shape: Optional[Shape] = None,
    special: bool = False,
) -> Value:
    """A value of one of the dtypes; of a given shape (None: any size), or any; with NaN and limits
    if ``special``.
    """
    dtype = draw(st.sampled_from(dtypes))
    sizes = draw(shapes()) if shape is None else shape
    fixed = tuple([draw(st.integers(0, 3)) if size is None else size for size in sizes])
    count = math.prod(fixed)
    return Value(
        dtype, fixed, tuple(draw(st.lists(_items(dtype, special), min_size=count, max_size=count)))
    )


@st.composite
def relaxed(draw: st.DrawFn, shape: tuple[int, ...]) -> Shape:
    """A static shape some of whose sizes are not known."""
    return tuple([None if draw(st.booleans()) else size for size in shape])
