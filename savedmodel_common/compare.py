"""Compare two tensors, two sets of named tensors or two nests: the differences, their places and
sizes.

The default is bit-exact, and means it: -0.0 is not 0.0, since ``1 / x`` and ``sign`` tell them
apart. Only NaN is one value whatever its payload. With a tolerance a difference of ``atol + rtol *
|expected|`` is allowed; it applies to floating and complex tensors, never to integers, booleans,
quantised values and strings. The tolerance that an artifact states about itself counts up to the
limit of the dtype (`savedmodel_common.limits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_impl.errors import shortened
from savedmodel_common.limits import limit_of
from savedmodel_common.tensors import CARRIERS, Tensor

Array = npt.NDArray[Any]

FLOATS = {"float16", "float32", "float64"} | {
    name for name in CARRIERS if name.startswith(("bfloat", "float8"))
}
COMPLEX = {"complex64": "float32", "complex128": "float64"}
_SHOWN = 80  # characters of a value in a message


class Tolerance(NamedTuple):
    """The allowed difference of an answer: ``rtol`` and ``atol`` as this project or its user says,
    ``stated_rtol`` and ``stated_atol`` as the artifact says that is judged by them."""

    rtol: float = 0.0
    atol: float = 0.0
    stated_rtol: float = 0.0
    stated_atol: float = 0.0

    def or_wider(self, *bounds: float) -> Tolerance:
        """Return the tolerance that allows what either allows; ``bounds``: as many of the fields as
        are known.
        """
        return Tolerance(*(max(pair) for pair in zip_longest(self, bounds, fillvalue=0.0)))

    def of(self, dtype: str) -> tuple[float, float]:
        """Return the relative and the absolute difference that are allowed in a floating or complex
        tensor of ``dtype``.
        """
        limit = limit_of(dtype)
        return max(self.rtol, min(self.stated_rtol, limit.rtol)), max(
            self.atol, min(self.stated_atol, limit.atol)
        )

    def cut(self, dtype: str) -> str:
        """Return in words that the artifact states more than counts for ``dtype``; "" if it does
        not.
        """
        limit = limit_of(dtype)
        if self.stated_rtol <= limit.rtol and self.stated_atol <= limit.atol:
            return ""
        stated = f"rtol {self.stated_rtol:g} and atol {self.stated_atol:g}"
        return (
            f"the artifact states {stated}; for {dtype} only {limit.rtol:g} and {limit.atol:g}"
            " count"
        )


EXACT = Tolerance()


@dataclass(frozen=True)
class Mismatch:
    """One difference, of the ``kind`` names, dtype, shape, value or structure.

    ``where``: tensor name or path in the nest.
    """

    kind: str
    where: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def to_json(self) -> dict[str, Any]:
        """Return the record of this difference in the details of a finding."""
        return {"where": self.where, "kind": self.kind, **self.details}


def compare_named(
    expected: Mapping[str, Tensor], got: Mapping[str, Tensor], tolerance: Tolerance
) -> list[Mismatch]:
    """Return all differences between two sets of named tensors, in any order."""
    out = []
    missing, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
    if missing or extra:
        parts = [
            f"{word} {', '.join(map(repr, names))}"
            for word, names in (("missing", missing), ("unexpected", extra))
            if names
        ]
        out.append(
            Mismatch(
                "names",
                "",
                "outputs differ: " + "; ".join(parts),
                {"missing": missing, "unexpected": extra},
            )
        )
    for name in expected:
        if name in got:
            difference = compare_tensor(name, expected[name], got[name], tolerance)
            if difference:
                out.append(difference)
    return out


def compare_tensor(
    where: str, expected: Tensor, got: Tensor, tolerance: Tolerance = EXACT
) -> Mismatch | None:
    """Return the difference between two tensors, or None."""
    if expected.dtype != got.dtype:
        return Mismatch(
            "dtype",
            where,
            f"is {got.dtype}, expected {expected.dtype}",
            {"expected": expected.dtype, "got": got.dtype},
        )
    if expected.array.shape != got.array.shape:
        shapes = {"expected": list(expected.array.shape), "got": list(got.array.shape)}
        return Mismatch(
            "shape", where, f"has the shape {shapes['got']}, expected {shapes['expected']}", shapes
        )
    differs = _differing(expected, got, tolerance)
    count = int(np.count_nonzero(differs))
    if not count:
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    shown = {"expected": _show(expected, index), "got": _show(got, index)}
    at = f"element {list(index)}" if index else "the scalar"
    text = f"{at} is {shown['got']}, expected {shown['expected']} ({count} of {differs.size} differ"
    details: dict[str, Any] = {
        **shown,
        "index": list(index),
        "differing": count,
        "elements": int(differs.size),
    }
    errors = _errors(expected, got, differs)
    details.update(errors)
    for name, value in errors.items():
        text += f", {name.replace('_', ' ')} {value:g}"
    cut = tolerance.cut(expected.dtype) if _is_inexact(expected.dtype) else ""
    if cut:
        text, details = f"{text}; {cut}", {**details, "tolerance": cut}
    return Mismatch("value", where, text + ")", details)


def numbers(tensor: Tensor) -> Array:
    """Return the tensor's numbers in a NumPy type that can compute: a carrier of bits becomes the
    type that it carries.
    """
    if tensor.dtype in FLOATS and tensor.dtype != tensor.array.dtype.name:
        import ml_dtypes

        typed: Array = np.asarray(tensor.array).view(getattr(ml_dtypes, tensor.dtype))
        return typed.astype(np.float32)
    return np.asarray(tensor.array)


def _is_inexact(dtype: str) -> bool:
    return dtype in FLOATS or dtype in COMPLEX


def _differing(expected: Tensor, got: Tensor, tolerance: Tolerance) -> Array:
    if not _is_inexact(expected.dtype):
        return np.asarray(np.not_equal(expected.array, got.array), dtype=bool)
    same = _same_bits(expected, got)
    rtol, atol = tolerance.of(expected.dtype)
    if rtol or atol:
        # In double precision, else a difference near the limit would itself be rounded.
        wide = np.complex128 if expected.dtype in COMPLEX else np.float64
        left, right = numbers(expected).astype(wide), numbers(got).astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(left - right) <= atol + rtol * np.abs(left)
        same = same | (near & np.isfinite(left) & np.isfinite(right))
    return np.asarray(~same)


def _same_bits(expected: Tensor, got: Tensor) -> Array:
    left, right = np.ascontiguousarray(expected.array), np.ascontiguousarray(got.array)
    shape = expected.array.shape
    if expected.dtype in COMPLEX:
        part = np.dtype(COMPLEX[expected.dtype])
        pair = [Tensor(part.name, side.view(part).reshape((*shape, 2))) for side in (left, right)]
        return np.asarray(np.all(_same_bits(*pair), axis=-1))
    bits = np.dtype(f"u{left.dtype.itemsize}")
    equal = left.view(bits).reshape(shape) == right.view(bits).reshape(shape)
    with np.errstate(invalid="ignore"):
        nan = np.isnan(numbers(expected)) & np.isnan(numbers(got))
    return np.asarray(equal | nan)


def _errors(expected: Tensor, got: Tensor, differs: Array) -> dict[str, float]:
    """Return the largest absolute error and the largest error in units of the last place, over the
    differing finite elements.
    """
    if not _is_inexact(expected.dtype):
        return {}
    left, right = numbers(expected)[differs], numbers(got)[differs]
    finite = np.isfinite(left) & np.isfinite(right)
    if not finite.any():
        return {}
    wide = np.complex128 if expected.dtype in COMPLEX else np.float64
    with np.errstate(over="ignore"):
        out = {
            "max_abs_error": float(
                np.max(np.abs(left[finite].astype(wide) - right[finite].astype(wide)))
            )
        }
    if expected.dtype in FLOATS:
        pair = [
            Tensor(tensor.dtype, np.asarray(tensor.array)[differs][finite])
            for tensor in (expected, got)
        ]
        out["max_ulp_error"] = float(np.max(ulps(*pair)))
    return out


def ulps(one: Tensor, other: Tensor) -> Array:
    """Return the distance of floats in units of the last place, as uint64: that of two doubles may
    not fit into 63 bits.
    """
    left, right = _ordered(one), _ordered(other)
    distance: Array = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(
        np.uint64
    )
    return distance


def _ordered(tensor: Tensor) -> Array:
    """Return each float as an integer, such that neighbouring floats become neighbouring
    integers.
    """
    array = np.asarray(tensor.array)
    size = array.dtype.itemsize
    bits = array.view(np.dtype(f"i{size}")).astype(np.int64)
    magnitude = bits & ((1 << (8 * size - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)


def _show(tensor: Tensor, index: tuple[int, ...]) -> str:
    item = numbers(tensor)[index]
    return shortened(repr(item) if isinstance(item, bytes) else str(item), _SHOWN)


# Nests (docs/exporters/artifacts.md, section 3)
# -----------------------------------------------------------------------------------

_MEMBERS = {
    "$tensor",
    "$sparse",
    "$ragged",
}  # their content names tensors, and names are the encoder's choice


def compare_nests(
    expected: Any,
    got: Any,
    expected_tensors: Mapping[str, Tensor],
    got_tensors: Mapping[str, Tensor],
    tolerance: Tolerance,
) -> list[Mismatch]:
    """Return the differences between two nests: of structure, else of the tensors at the same
    places.
    """
    return list(_walk(expected, got, expected_tensors, got_tensors, tolerance, "result"))


def flatten(nest: Any, tensors: Mapping[str, Tensor]) -> tuple[Any, dict[str, Tensor]]:
    """Return a nest without tensors, and the tensors by path (as in :func:`compare_nests`),
    independent of their names.
    """
    out: dict[str, Tensor] = {}
    return _without_tensors(nest, tensors, "result", out), out


def _without_tensors(
    nest: Any, tensors: Mapping[str, Tensor], path: str, out: dict[str, Tensor]
) -> Any:
    kind = _kind(nest)
    if kind in _MEMBERS:
        names = nest[kind] if isinstance(nest[kind], list) else [nest[kind]]
        for position, name in enumerate(names):
            out[_where(path, kind, position)] = tensors[name]
        return {kind: len(names)}
    children = _children(nest)
    if children is None:
        return nest
    return [
        kind,
        _title(nest),
        [[key, _without_tensors(item, tensors, f"{path}[{key!r}]", out)] for key, item in children],
    ]


def _where(path: str, kind: str, position: int) -> str:
    return path if kind == "$tensor" else f"{path}.{kind[1:]}[{position}]"


def _walk(
    expected: Any,
    got: Any,
    left: Mapping[str, Tensor],
    right: Mapping[str, Tensor],
    tolerance: Tolerance,
    path: str,
) -> Any:
    if _kind(expected) != _kind(got):
        yield Mismatch("structure", path, f"is {_describe(got)}, expected {_describe(expected)}")
        return
    kind = _kind(expected)
    if kind in _MEMBERS:
        names = [item if isinstance(item, list) else [item] for item in (expected[kind], got[kind])]
        if len(names[0]) != len(names[1]):
            yield Mismatch(
                "structure", path, f"has {len(names[1])} components, expected {len(names[0])}"
            )
            return
        for position, (one, other) in enumerate(zip(*names)):
            difference = compare_tensor(
                _where(path, kind, position), left[one], right[other], tolerance
            )
            if difference:
                yield difference
        return
    here, there = _children(expected), _children(got)
    if here is None or there is None:
        if expected != got:
            yield Mismatch(
                "structure", path, f"is {_describe(got)}, expected {_describe(expected)}"
            )
    elif [key for key, _ in here] != [key for key, _ in there] or _title(expected) != _title(got):
        yield Mismatch("structure", path, f"is {_describe(got)}, expected {_describe(expected)}")
    else:
        for (key, one), (_, other) in zip(here, there):
            yield from _walk(one, other, left, right, tolerance, f"{path}[{key!r}]")


def _kind(nest: Any) -> str:
    if isinstance(nest, dict) and len(nest) == 1:
        return str(next(iter(nest)))
    return type(nest).__name__


def _children(nest: Any) -> list[tuple[Any, Any]] | None:
    """Return the keys and items of a container, None for a leaf."""
    if isinstance(nest, list):
        return list(enumerate(nest))
    kind = _kind(nest)
    if kind == "$tuple":
        return list(enumerate(nest[kind]))
    if kind == "$dict":
        return [(key, item) for key, item in nest[kind]]
    if kind == "$namedtuple":
        return [(key, item) for key, item in nest[kind][1]]
    return None


def _title(nest: Any) -> Any:
    return nest["$namedtuple"][0] if _kind(nest) == "$namedtuple" else None


def _describe(nest: Any) -> str:
    kind, children = _kind(nest), _children(nest)
    if children is not None:
        keys = ", ".join(str(key) for key, _ in children)
        return f"a {_title(nest) or kind.lstrip('$')} of {len(children)} ({keys})"[: 2 * _SHOWN]
    if kind in _MEMBERS:
        return f"a {kind[1:]} tensor" if kind != "$tensor" else "a tensor"
    text = str(nest[kind]) if kind.startswith("$") else repr(nest)
    return f"{kind.lstrip('$')} {text}"[:_SHOWN]
