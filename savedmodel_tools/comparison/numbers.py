"""The distance of two tensors of numbers, read piece by piece: memory for one piece, for any size
of the tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reference_impl.errors import UnsupportedError
from reference_impl.format.values.dtypes import DType
from savedmodel_common.compare import (
    COMPLEX,
    FLOATS,
    numbers,
    ulps,
)
from savedmodel_common.tensors import Tensor
from savedmodel_tools.comparison.measures import Measures, shortest
from savedmodel_tools.comparison.model import Options

Array = npt.NDArray[Any]


class Distance(Measures):
    """The distance of two tensors of one shape. The tolerance is for floating types.

    Different dtypes are compared as float64, and nothing of that is within a tolerance.
    """

    def __init__(self, one: DType, other: DType, options: Options) -> None:
        super().__init__(options)
        self.one, self.other = one, other
        self.typed = one.name == other.name
        self.floating = self.typed and (one.name in FLOATS or one.name in COMPLEX)

    def add(self, one: bytes, other: bytes, start: int = 0) -> None:
        """More elements of both, the first of them at ``start`` of the tensors."""
        left, right = _part(one, self.one), _part(other, self.other)
        width = 2 if self.one.name in COMPLEX else 1
        index = np.flatnonzero(self._differ(left, right))
        if index.size:
            pair = [Tensor(side.dtype, side.array[index]) for side in (left, right)]
            if self.first is None:
                values = [_values(Tensor(side.dtype, side.array[:1]))[0] for side in pair]
                texts = [
                    shortest(float(value)) if value.dtype == np.float32 else str(value)
                    for value in values
                ]
                self.first = (start + int(index[0]) // width, texts[0], texts[1])
            self.differing += _elements(index, width)
            self._measure(pair[0], pair[1], start + index // width)

    def _differ(self, left: Tensor, right: Tensor) -> Array:
        if self.typed:
            bits = np.dtype(f"u{left.array.dtype.itemsize}")
            return np.asarray(left.array.view(bits) != right.array.view(bits))
        x, y = _wide(left), _wide(right)
        return np.asarray((x != y) & ~(np.isnan(x) & np.isnan(y)))

    def _measure(self, left: Tensor, right: Tensor, places: Array) -> None:
        if left.dtype == right.dtype == "bool":
            self.beyond = self.differing
            return
        if self.typed and not self.floating:
            x, y = _values(left), _values(right)
            # As unsigned: the distance of two int64 does not fit one.
            kind = np.uint64 if x.dtype.kind == "u" else np.int64
            high, low = np.maximum(x, y).astype(kind), np.minimum(x, y).astype(kind)
            distance = high.view(np.uint64) - low.view(np.uint64)
            larger = np.maximum(np.abs(x.astype(np.float64)), np.abs(y.astype(np.float64)))
            self._largest(distance.astype(np.float64), larger, places)
            self.beyond = self.differing
            return
        x, y = _wide(left), _wide(right)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        self.same_value += int(np.count_nonzero(same))
        self.new_nan += int(np.count_nonzero(np.isnan(y) & ~np.isnan(x)))
        self.gone_nan += int(np.count_nonzero(np.isnan(x) & ~np.isnan(y)))
        self.new_inf += int(np.count_nonzero(np.isinf(y) & ~np.isinf(x)))
        self.gone_inf += int(np.count_nonzero(np.isinf(x) & ~np.isinf(y)))
        finite = np.isfinite(x) & np.isfinite(y) & ~same
        near = same.copy()
        if finite.any():
            x, y = x[finite], y[finite]
            with np.errstate(over="ignore"):
                apart = np.abs(x - y)
            larger = np.maximum(np.abs(x), np.abs(y))
            self._largest(apart, larger, places[finite])
            near[finite] = self._near(left, right, finite, apart, larger)
        if self.options.exact or not self.typed:
            self.beyond = self.differing
        else:
            self.beyond += (
                int(np.count_nonzero(~near))
                if self.one.name not in COMPLEX
                else _elements(places[~near], 1)
            )

    def _near(
        self, left: Tensor, right: Tensor, finite: Array, apart: Array, larger: Array
    ) -> Array:
        near = np.zeros(len(apart), bool)
        if self.floating:
            steps = ulps(*[Tensor(side.dtype, side.array[finite]) for side in (left, right)])
            self.max_ulp = max(self.max_ulp or 0, int(steps.max()))
            if self.options.ulps is not None:
                near |= steps <= np.uint64(self.options.ulps)
        if self.options.rtol is not None or self.options.atol is not None:
            near |= apart <= (self.options.atol or 0) + (self.options.rtol or 0) * larger
        return near

    def _largest(self, apart: Array, larger: Array, places: Array) -> None:
        at = int(np.argmax(apart))
        if self.max_abs is None or apart[at] > self.max_abs:
            self.max_abs, self.max_abs_at = float(apart[at]), int(places[at])
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = apart / larger
        found = relative[np.isfinite(relative)]
        if found.size:
            self.max_rel = max(self.max_rel or 0.0, float(found.max()))


def _elements(index: Array, width: int) -> int:
    """Return the number of elements, each of ``width`` parts, to which ascending indices of parts
    belong.
    """
    places = index // width if width > 1 else index
    return int(np.count_nonzero(np.diff(places))) + bool(places.size)


def _part(data: bytes, dtype: DType) -> Tensor:
    """Return the elements as NumPy can hold them; a complex number is two elements."""
    name = COMPLEX.get(dtype.name, dtype.name)
    return Tensor(
        name, np.frombuffer(data, np.dtype(name) if dtype.name in COMPLEX else dtype.carrier)
    )


def _values(tensor: Tensor) -> Array:
    """Return the numbers whose bits an array holds."""
    if tensor.dtype in FLOATS:
        return numbers(tensor)
    from reference_impl.format.values import dtypes

    try:
        typed = tensor.array.view(dtypes.by_name(tensor.dtype).numpy())
    except UnsupportedError:  # by an old ml_dtypes; then the bits as they are
        return np.asarray(tensor.array)
    return np.asarray(typed if typed.dtype.kind in "iub" else typed.astype(np.int64))


def _wide(tensor: Tensor) -> Array:
    return np.asarray(_values(tensor).astype(np.float64))
