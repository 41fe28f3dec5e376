"""What a concrete function accepts, and how its results are put together (FMT-05, PY-01..PY-09, A trace's structured signature).

A decoded signature is a nest of lists, tuples, namedtuples and dicts whose leaves are TypeSpecs and Python literals.
:func:`pattern` turns it into an object that compares arguments with it and takes their tensors out in the order in which the
function wants them; :func:`packer` into a function that builds the result from the function's flat outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api

# How far the comparison goes: the second pass over the traces takes arrays and numbers for tensors.
EQUAL, CONVERT = range(2)


class Mismatch(Exception):
    """Where and why a value does not fit."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.path = ""

    def __str__(self) -> str:
        return f"{self.path or 'the value'} {self.args[0]}"


class Pattern:
    """A part of a structured signature. ``match`` appends the tensors of a value that fits; otherwise it raises Mismatch."""

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        raise NotImplementedError


class TensorPattern(Pattern):
    """A tensor of one dtype and a compatible shape."""

    def __init__(self, spec: tf.TensorSpec):
        self.spec = spec
        self.dtype = spec.dtype
        self.shape = spec.shape
        self.any_shape = spec.shape.rank is None

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        if isinstance(value, tf.Variable):
            value = tf.convert_to_tensor(value)
        elif not isinstance(value, (tf.Tensor, tf.TensorSpec)):
            if level < CONVERT:
                raise Mismatch(f"is {_name(value)}, not a tensor")
            value = _convert(value, self.dtype)
        if value.dtype != self.dtype:
            raise Mismatch(f"has dtype {value.dtype.name}, not {self.dtype.name}")
        if not self.any_shape and not self.shape.is_compatible_with(value.shape):
            raise Mismatch(f"has shape {value.shape}, not {self.shape}")
        tensors.append(value)


class VariablePattern(Pattern):
    """A `tf.Variable` argument: the function gets its handle."""

    def __init__(self, spec: Any):
        self.spec = spec

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        if isinstance(value, type(self.spec)):
            if not self.spec.is_compatible_with(value):
                raise Mismatch(f"is {value}, not {self.spec}")
            tensors.append(value)
            return
        if not isinstance(value, tf.Variable):
            raise Mismatch(f"is {_name(value)}, not a tf.Variable")
        if value.dtype != self.spec.dtype or not self.spec.shape.is_compatible_with(value.shape):
            raise Mismatch(
                f"is a {value.dtype.name} variable of shape {value.shape}, not {self.spec.dtype.name} {self.spec.shape}"
            )
        api.variable_accessed(value)
        tensors.append(value.handle)


class CompositePattern(Pattern):
    """A ragged, sparse or other composite tensor: one or more tensors inside one value."""

    def __init__(self, spec: tf.TypeSpec):
        self.spec = spec

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        if isinstance(value, (tf.Tensor, tf.Variable)) or not self.spec.is_compatible_with(value):
            raise Mismatch(f"is {_name(value)}, not compatible with {self.spec}")
        tensors.extend(tf.nest.flatten(value, expand_composites=True))


class LiteralPattern(Pattern):
    """A Python value that was part of the trace: only an equal one fits (PY-06; NaN equals NaN)."""

    def __init__(self, literal: Any):
        self.literal = literal

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
            value = value.item()  # PY-01: a NumPy scalar is the number it holds
        if not _equal(self.literal, value):
            raise Mismatch(f"is {_shown(value)}, not {_shown(self.literal)}")


class SequencePattern(Pattern):
    """A list, tuple or namedtuple: the same kind and length.

    RFC: PY-03, PY-04
    """

    def __init__(self, kind: type, items: tuple[Pattern, ...], fields: Optional[tuple[str, ...]] = None):
        self.kind, self.items, self.fields = kind, items, fields
        self.name = kind.__name__

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        fields = getattr(value, "_fields", None)
        if self.fields is not None:
            if fields is None or tuple(fields) != self.fields or type(value).__name__ != self.name:
                raise Mismatch(f"is {_name(value)}, not the namedtuple {self.name}({', '.join(self.fields)})")
        elif not isinstance(value, self.kind) or fields is not None:
            raise Mismatch(f"is {_name(value)}, not a {self.name}")
        if len(value) != len(self.items):
            raise Mismatch(f"has {len(value)} items, not {len(self.items)}")
        for index, (item, pattern) in enumerate(zip(value, self.items)):
            _descend(pattern, item, level, tensors, f"[{index}]")


class MappingPattern(Pattern):
    """A dict with the same keys; its tensors come in the order of the sorted keys."""

    def __init__(self, items: dict[Any, Pattern]):
        self.items = {key: items[key] for key in sorted(items, key=_sort_key)}

    def match(self, value: Any, level: int, tensors: list[Any]) -> None:
        if not isinstance(value, Mapping):
            raise Mismatch(f"is {_name(value)}, not a dict")
        if len(value) != len(self.items) or any(key not in value for key in self.items):
            raise Mismatch(f"has the keys {sorted(value, key=_sort_key)}, not {list(self.items)}")
        for key, pattern in self.items.items():
            _descend(pattern, value[key], level, tensors, f"[{key!r}]")


def pattern(nest: Any) -> Pattern:
    """Return the pattern of a decoded signature. Its depth is limited by the decoder."""
    if isinstance(nest, tf.TensorSpec):
        return TensorPattern(nest)
    if isinstance(nest, tf.TypeSpec):
        return VariablePattern(nest) if type(nest).__name__ == "VariableSpec" else CompositePattern(nest)
    if isinstance(nest, (list, tuple)):
        fields = getattr(nest, "_fields", None)
        kind = type(nest) if fields is not None else tuple if isinstance(nest, tuple) else list
        return SequencePattern(kind, tuple(pattern(item) for item in nest), fields)
    if isinstance(nest, dict):
        return MappingPattern({key: pattern(item) for key, item in nest.items()})
    return LiteralPattern(nest)


def packer(nest: Any) -> tuple[int, Callable[[Iterator[Any]], Any]]:
    """How to build a result like ``nest``: the number of tensors needed, and a function that takes them from an iterator."""
    if isinstance(nest, tf.TensorSpec):
        return 1, next
    if isinstance(nest, tf.TypeSpec):
        count = len(tf.nest.flatten(nest, expand_composites=True))
        return count, lambda tensors: tf.nest.pack_sequence_as(
            nest, [next(tensors) for _ in range(count)], expand_composites=True
        )
    if isinstance(nest, (list, tuple)):
        parts = [packer(item) for item in nest]
        make = type(nest)._make if hasattr(nest, "_make") else type(nest)
        build = [function for _, function in parts]
        return sum(count for count, _ in parts), lambda tensors: make([function(tensors) for function in build])
    if isinstance(nest, dict):
        keyed = {key: packer(nest[key]) for key in sorted(nest, key=_sort_key)}
        items = [(key, function) for key, (_, function) in keyed.items()]
        return sum(count for count, _ in keyed.values()), lambda tensors: {key: function(tensors) for key, function in items}
    return 0, lambda _: nest


def specs_of(nest: Any) -> list[tf.TypeSpec]:
    """Return the TypeSpecs of a nest, in the order of its tensors."""
    return [leaf for leaf in tf.nest.flatten(nest) if isinstance(leaf, tf.TypeSpec)]


def _descend(inner: Pattern, value: Any, level: int, tensors: list[Any], step: str) -> None:
    try:
        inner.match(value, level, tensors)
    except Mismatch as mismatch:
        mismatch.path = step + mismatch.path
        raise


def _convert(value: Any, dtype: tf.DType) -> Any:
    if value is None or isinstance(value, tf.TypeSpec):
        raise Mismatch(f"is {_shown(value)}, not a tensor")
    try:
        return tf.convert_to_tensor(value, dtype_hint=dtype)
    except (TypeError, ValueError) as error:
        raise Mismatch(f"cannot become a {dtype.name} tensor: {error}") from None


def _equal(literal: Any, value: Any) -> bool:
    if literal is value:
        return True
    if isinstance(value, (tf.Tensor, tf.Variable, tf.TypeSpec)) or isinstance(literal, tf.DType) != isinstance(value, tf.DType):
        return False
    if isinstance(literal, tf.TensorShape) or isinstance(value, tf.TensorShape):
        both = isinstance(literal, tf.TensorShape) and isinstance(value, tf.TensorShape)
        return both and literal.rank == value.rank and (literal.rank is None or literal.as_list() == value.as_list())
    if isinstance(literal, float) and isinstance(value, float) and math.isnan(literal):
        return math.isnan(value)
    try:
        return bool(literal == value)
    except Exception:  # the caller's object may compare itself to anything in any way
        return False


def _sort_key(key: Any) -> tuple[str, Any]:
    return (type(key).__name__, key)


def _name(value: Any) -> str:
    return f"{_shown(value)} ({type(value).__name__})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
