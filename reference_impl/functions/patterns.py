"""Match the arguments of a concrete function, and build its results.

A decoded signature is a nested structure of lists, tuples, namedtuples and dicts whose leaves are
TypeSpecs and Python literals. :func:`pattern` returns a function that compares arguments with the
signature and extracts their tensors in the order of the FunctionDef. :func:`packer` returns a
function that builds the result from the flat outputs.

RFC: FMT-05, PY-01, PY-02, PY-03, PY-04, PY-05, PY-06, PY-07, PY-08, PY-09
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import StructureError, shortened

# ``match(value, convert, tensors)`` appends the tensors of a value that fits; otherwise it raises
# Mismatch. With `convert`, Python numbers and lists are accepted for tensors, and a NumPy scalar
# for the number that it holds.
Match = Callable[[Any, bool, "Tensors"], None]


class Mismatch(Exception):
    """Where and why a value does not fit."""

    path = ""

    def __str__(self) -> str:
        return f"{self.path or 'the value'} {self.args[0]}"


class Tensors(list[Any]):
    """The flat tensors of a call.

    `shapes` are the shapes of the parts of composite tensors by position, as far as the type of the
    composite tells them. TensorFlow knows no more when it traces a call: it does not know how many
    values a ragged tensor has.

    With `casts`, a NumPy array may have another dtype than the trace. As in TensorFlow, this holds
    for arguments of a declared type only; to choose among traces, an array counts as a tensor of
    its own dtype. With `specs`, TypeSpecs stand for values, and `exact` tells whether all values
    have just the types of the trace, not only compatible ones.
    """

    def __init__(self, casts: bool = True, specs: bool = False) -> None:
        self.shapes: dict[int, tf.TensorShape] = {}
        self.casts, self.specs, self.exact = casts, specs, True

    def add_parts(self, composite: object) -> None:
        """Add the parts of a composite tensor, or of its TypeSpec."""
        spec = (
            composite if isinstance(composite, tf.TypeSpec) else tf.type_spec_from_value(composite)
        )
        parts = tf.nest.flatten(spec, expand_composites=True)
        self.shapes.update((position, part.shape) for position, part in enumerate(parts, len(self)))
        self.extend(tf.nest.flatten(composite, expand_composites=True))

    def compare(self, given: Any, spec: Any) -> None:
        """Note whether a value, or the TypeSpec for it, has exactly the type `spec`.

        A spec without a name has any name.
        """
        if not isinstance(spec, tf.TensorSpec):
            given = given if isinstance(given, tf.TypeSpec) else tf.type_spec_from_value(given)
            self.exact &= given == spec
            return
        named = isinstance(given, tf.TensorSpec) and given.name not in (None, spec.name)
        same = (
            given.shape.rank is None
            if spec.shape.rank is None
            else given.shape.rank is not None and given.shape == spec.shape
        )
        self.exact &= same and not named


def pattern(nest: object) -> Match:
    """Return the function that compares values with a decoded signature, whose depth the decoder
    has limited.
    """
    if isinstance(nest, tf.TensorSpec):
        return _tensor(nest)
    if isinstance(nest, tf.TypeSpec):
        return _variable(nest) if type(nest).__name__ == "VariableSpec" else _composite(nest)
    if isinstance(nest, (list, tuple)):
        return _sequence(nest)
    return _mapping(nest) if isinstance(nest, dict) else _literal(nest)


def _tensor(spec: tf.TensorSpec) -> Match:
    """Match tensors of one dtype and a compatible shape."""
    dtype, shape, any_shape = spec.dtype, spec.shape, spec.shape.rank is None

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        if isinstance(value, tf.Variable):
            value = tf.convert_to_tensor(value)
        elif isinstance(value, (np.ndarray, np.generic)) and not (convert and tensors.casts):
            value = _convert(value)
        elif isinstance(value, tf.TensorSpec) and tensors.specs:
            if tensors.casts and not _covers(shape, value.shape):
                raise Mismatch(f"has shape {value.shape}, which is not {shape} in all cases")
            if tensors.casts and value.name not in (
                None,
                spec.name,
            ):  # a declared name is a part of the type
                raise Mismatch(f"has the name {value.name!r}, not {spec.name!r}")
        elif not isinstance(value, tf.Tensor):
            if not convert:
                raise Mismatch(f"is {_name(value)}, not a tensor")
            value, tensors.exact = _convert(value, dtype), False
        if value.dtype != dtype:
            raise Mismatch(f"has dtype {value.dtype.name}, not {dtype.name}")
        if not any_shape and not shape.is_compatible_with(value.shape):
            raise Mismatch(f"has shape {value.shape}, not {shape}")
        if tensors.specs:
            tensors.compare(value, spec)
        tensors.append(value)

    return match


def _variable(spec: tf.TypeSpec) -> Match:
    """Match variables; the function takes their handles."""

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        if isinstance(value, type(spec)) and tensors.specs:
            if not spec.is_compatible_with(value):
                raise Mismatch(f"is {value}, not {spec}")
            tensors.append(value)
            return
        if not isinstance(value, tf.Variable):
            raise Mismatch(f"is {_name(value)}, not a tf.Variable")
        if value.dtype != spec.dtype or not spec.shape.is_compatible_with(value.shape):
            raise Mismatch(
                f"is a {value.dtype.name} variable of shape {value.shape}, not {spec.dtype.name}"
                f" {spec.shape}"
            )
        api.variable_accessed(value)
        tensors.append(value.handle)

    return match


def _composite(spec: tf.TypeSpec) -> Match:
    """Match ragged, sparse and other composite tensors: one or more tensors inside one value."""

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        plain = isinstance(value, (tf.Tensor, tf.Variable)) or (
            isinstance(value, tf.TypeSpec) and not tensors.specs
        )
        if plain or not spec.is_compatible_with(value):
            raise Mismatch(f"is {_name(value)}, not compatible with {spec}")
        if tensors.specs:
            tensors.compare(value, spec)
        tensors.add_parts(value)

    return match


def _literal(literal: object) -> Match:
    """Match Python values that equal the traced value.

    NaN equals NaN.

    A NumPy scalar, a tensor to TensorFlow, equals its number only where no trace takes that tensor.
    Likewise, the name of a dtype equals the dtype only where no trace was made for the name.

    RFC: PY-01, PY-06
    """

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        array = isinstance(value, (np.ndarray, np.generic))
        if array and convert and value.shape == ():
            value, array = value.item(), False
        if array or not (_equal(literal, value) or (convert and _same_dtype(literal, value))):
            raise Mismatch(f"is {short_repr(value)}, not {short_repr(literal)}")

    return match


def _sequence(nest: Any) -> Match:
    """Match lists, tuples or namedtuples of the same kind and length.

    RFC: PY-03, PY-04
    """
    items, fields = [pattern(item) for item in nest], getattr(nest, "_fields", None)
    kind = list if isinstance(nest, list) else tuple
    name = kind.__name__ if fields is None else type(nest).__name__

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        given = getattr(value, "_fields", None)
        if fields is not None:
            if given is None or tuple(given) != fields or type(value).__name__ != name:
                raise Mismatch(f"is {_name(value)}, not the namedtuple {name}({', '.join(fields)})")
        elif not isinstance(value, kind) or given is not None:
            raise Mismatch(f"is {_name(value)}, not a {name}")
        if len(value) != len(items):
            raise Mismatch(f"has {len(value)} items, not {len(items)}")
        for index, (inner, item) in enumerate(zip(items, value)):
            _descend(inner, item, convert, tensors, index)

    return match


def _mapping(nest: dict[Any, Any]) -> Match:
    """Match dicts with the same keys; the tensors come in the order of the sorted keys."""
    items = {key: pattern(nest[key]) for key in sorted(nest, key=_sort_key)}

    def match(value: Any, convert: bool, tensors: Tensors) -> None:
        if not isinstance(value, Mapping):
            raise Mismatch(f"is {_name(value)}, not a dict")
        if len(value) != len(items) or any(key not in value for key in items):
            raise Mismatch(f"has the keys {sorted(value, key=_sort_key)}, not {list(items)}")
        for key, inner in items.items():
            _descend(inner, value[key], convert, tensors, key)

    return match


def _descend(inner: Match, value: object, convert: bool, tensors: Tensors, key: object) -> None:
    try:
        inner(value, convert, tensors)
    except Mismatch as mismatch:
        mismatch.path = f"[{key!r}]{mismatch.path}"
        raise


def packer(nest: object) -> tuple[int, Callable[[Iterator[Any]], Any]]:
    """Return the number of tensors in a result like `nest`, and a function that builds the result
    from an iterator of tensors.
    """
    if isinstance(nest, tf.TensorSpec):
        return 1, next
    if isinstance(nest, tf.TypeSpec):
        count = len(tf.nest.flatten(nest, expand_composites=True))
        return count, lambda tensors: _pack_composite(nest, [next(tensors) for _ in range(count)])
    if isinstance(nest, (list, tuple)):
        parts = [packer(item) for item in nest]
        make = type(nest)._make if hasattr(nest, "_make") else type(nest)
        build = [function for _, function in parts]
        return sum(count for count, _ in parts), lambda tensors: make(
            [function(tensors) for function in build]
        )
    if isinstance(nest, dict):
        keyed = {key: packer(nest[key]) for key in sorted(nest, key=_sort_key)}
        items = [(key, function) for key, (_, function) in keyed.items()]
        return sum(count for count, _ in keyed.values()), lambda tensors: {
            key: function(tensors) for key, function in items
        }
    return 0, lambda _: nest


def _pack_composite(spec: tf.TypeSpec, parts: list[tf.Tensor]) -> Any:
    """Return a sparse, ragged or other composite tensor.

    Raises StructureError: the parts do not fit together.
    """
    try:
        return tf.nest.pack_sequence_as(spec, parts, expand_composites=True)
    except (TypeError, ValueError) as error:
        raise StructureError(
            f"the results of a function do not make a {spec.value_type.__name__}: {error}"
        ) from error


def _convert(value: object, dtype: Optional[tf.DType] = None) -> Any:
    """Return a value as a tensor, of the given dtype where that is a choice."""
    if value is None or isinstance(value, tf.TypeSpec):
        raise Mismatch(f"is {short_repr(value)}, not a tensor")
    try:
        return tf.convert_to_tensor(value, dtype_hint=dtype)
    except (
        TypeError,
        ValueError,
        tf.errors.OpError,
    ) as error:  # TensorFlow converts some values, such as a range, by an op
        raise Mismatch(
            f"cannot become a {f'{dtype.name} ' if dtype else ''}tensor: {error}"
        ) from None


def _covers(shape: tf.TensorShape, other: tf.TensorShape) -> bool:
    """Return whether every value of the other shape has this shape."""
    if shape.rank is None:
        return True
    return other.rank == shape.rank and all(
        mine in (None, size) for mine, size in zip(shape.as_list(), other.as_list())
    )


def _equal(literal: Any, value: Any) -> bool:
    if literal is value:
        return True
    if isinstance(value, (tf.Tensor, tf.Variable, tf.TypeSpec)) or isinstance(
        literal, tf.DType
    ) != isinstance(value, tf.DType):
        return False
    if isinstance(literal, tf.TensorShape) or isinstance(value, tf.TensorShape):
        both = isinstance(literal, tf.TensorShape) and isinstance(value, tf.TensorShape)
        return (
            both
            and literal.rank == value.rank
            and (literal.rank is None or literal.as_list() == value.as_list())
        )
    if isinstance(literal, float) and isinstance(value, float) and math.isnan(literal):
        return math.isnan(value)
    try:
        return bool(literal == value)
    except Exception:  # the caller's object may define any comparison
        return False


def _same_dtype(literal: object, value: object) -> bool:
    """Return whether one of two values is a DType and the other one its name or that of NumPy, as
    `tf.DType` compares them.
    """
    if isinstance(literal, tf.DType) == isinstance(value, tf.DType):
        return False
    dtype, name = (literal, value) if isinstance(literal, tf.DType) else (value, literal)
    return isinstance(name, (str, np.dtype, type)) and bool(dtype == name)


def _sort_key(key: object) -> tuple[str, Any]:
    return (type(key).__name__, key)


def _name(value: object) -> str:
    return f"{short_repr(value)} ({type(value).__name__})"


def short_repr(value: object, most: int = 80) -> str:
    """Return the text of a value for a message, shortened to a number of characters."""
    return shortened(repr(value), most, "...")
