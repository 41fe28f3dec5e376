"""StructuredValue: the nested structures in which arguments, results and specs of functions are
stored.

`decode` gives plain Python (None, bool, int, float, str, list, tuple, dict) and the value types
below for values that need a TensorFlow class; `encode` is its inverse. Nothing is looked up or
imported by name: a TypeSpec of any class stays data. The keys of a dict are sorted, since the file
does not keep their order.

RFC: FMT-04, FMT-05, PY-05
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from reference_impl.format import errors, limits, schema
from reference_impl.format.container.files import AnyPath
from reference_impl.format.values import dtypes, tensor_proto
from reference_impl.format.values.dtypes import DType
from reference_impl.format.values.shapes import shape_of, shape_proto

if TYPE_CHECKING:
    import numpy.typing as npt

_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True)
class TensorShape:
    """A shape that may be partly unknown.

    RFC: PY-07
    """

    dims: Optional[
        tuple[Optional[int], ...]
    ]  # sizes, with None for an unknown size; None for an unknown rank
    names: tuple[str, ...] = ()  # of the dimensions, if the file has them

    def __str__(self) -> str:
        return (
            "<unknown>"
            if self.dims is None
            else f"({', '.join('?' if d is None else str(d) for d in self.dims)})"
        )


@dataclass(frozen=True)
class TensorSpec:
    shape: TensorShape
    dtype: DType
    name: Optional[str] = None


def tensor_spec(
    dims: Optional[tuple[Optional[int], ...]], dtype: int, name: Optional[str]
) -> TensorSpec:
    """Return a TensorSpec from the number of its dtype. Raises DtypeError."""
    return TensorSpec(TensorShape(dims), dtypes.by_number(dtype), name)


@dataclass(frozen=True)
class Tensor:
    """A constant inside a nest: a tensor, or a NumPy array if `is_numpy` (A4: defaults of
    arguments).
    """

    data: bytes  # a serialised TensorProto
    is_numpy: bool = False

    @property
    def proto(self) -> schema.TensorProto:
        return schema.parse(schema.TensorProto, self.data)

    def array(self) -> npt.NDArray[Any]:
        """Return the values, read-only. Raises DtypeError, ShapeError, LimitError."""
        return tensor_proto.decode(self.proto)

    @staticmethod
    def of(array: npt.NDArray[Any], *, is_numpy: bool = False) -> Tensor:
        return Tensor(schema.serialize(tensor_proto.encode(array)), is_numpy)


@dataclass(frozen=True)
class BoundedTensorSpec:
    shape: TensorShape
    dtype: DType
    minimum: Tensor
    maximum: Tensor
    name: Optional[str] = None


@dataclass(frozen=True)
class TypeSpec:
    """A spec of any value but a dense tensor, as data."""

    kind: int  # number in TypeSpecProto.TypeSpecClass
    class_name: str  # name of the class, or the name it was registered under
    state: Any  # the nested structure to which the class serialised itself
    num_flat_components: int = 0  # tensors that a value of this type is made of

    @property
    def kind_name(self) -> str:
        """RAGGED_TENSOR_SPEC, EXTENSION_TYPE_SPEC, …; the number where this schema has no name for
        it.
        """
        value = schema.TypeSpecProto.DESCRIPTOR.enum_types_by_name[
            "TypeSpecClass"
        ].values_by_number.get(self.kind)
        return value.name if value else str(self.kind)


@dataclass(frozen=True)
class NamedTuple:
    """A namedtuple as the format stores it: its name and fields.

    RFC: PY-04
    """

    name: str
    fields: tuple[tuple[str, Any], ...]

    def __getitem__(self, field: str) -> Any:
        return dict(self.fields)[field]


def nested_values(*values: schema.StructuredValue) -> Iterator[schema.StructuredValue]:
    """Yield these messages and all messages inside them, at any depth, except inside type specs."""
    pending = list(values)
    while pending:
        value = pending.pop()
        yield value
        kind = value.WhichOneof("kind")
        if kind in ("list_value", "tuple_value"):
            pending += getattr(value, kind).values
        elif kind == "dict_value":
            pending += value.dict_value.fields.values()
        elif kind == "named_tuple_value":
            pending += [item.value for item in value.named_tuple_value.values]


def decode(
    value: schema.StructuredValue, file: Optional[AnyPath] = None, node: Optional[str] = None
) -> Any:
    """Decode a nest; errors name `file` and `node`, where the message is.

    Raises:
      StructureError: the kind is not set, or this schema does not know it.
      DtypeError, ShapeError, DuplicateKeyError (fields of a namedtuple), LimitError (nesting).
    """
    try:
        return _decode(value, 0)
    except errors.SavedModelError as error:
        error.file = None if file is None else str(file)
        error.node = node
        raise


def _decode(value: schema.StructuredValue, depth: int) -> Any:
    _check_depth(depth)
    kind = value.WhichOneof("kind")
    if kind is None:
        reason = "a value of no kind, or of one newer than this schema"
        raise errors.StructureError(reason, rule="SM-FN-8")
    held = getattr(value, kind)
    if kind in ("float64_value", "int64_value", "string_value", "bool_value"):
        return held
    if kind == "none_value":
        return None
    if kind in ("list_value", "tuple_value"):
        items = [_decode(item, depth + 1) for item in held.values]
        return items if kind == "list_value" else tuple(items)
    if kind == "dict_value":
        return {key: _decode(held.fields[key], depth + 1) for key in sorted(held.fields)}
    if kind == "named_tuple_value":
        return _decode_named_tuple(held, depth)
    if kind == "type_spec_value":
        state = _decode(held.type_state, depth + 1)
        return TypeSpec(
            held.type_spec_class, held.type_spec_class_name, state, held.num_flat_components
        )
    if kind == "tensor_shape_value":
        return decode_shape(held)
    if kind == "tensor_dtype_value":
        return dtypes.by_number(held)
    if kind in ("tensor_value", "numpy_value"):
        return Tensor(schema.serialize(held), kind == "numpy_value")
    spec = TensorSpec(decode_shape(held.shape), dtypes.by_number(held.dtype), held.name or None)
    if kind == "tensor_spec_value":
        return spec
    bounds = [Tensor(schema.serialize(bound)) for bound in (held.minimum, held.maximum)]
    return BoundedTensorSpec(spec.shape, spec.dtype, bounds[0], bounds[1], spec.name)


def _decode_named_tuple(value: schema.NamedTupleValue, depth: int) -> NamedTuple:
    fields = tuple((pair.key, _decode(pair.value, depth + 1)) for pair in value.values)
    if len({name for name, _ in fields}) != len(fields):
        raise errors.DuplicateKeyError(f"namedtuple {value.name} has a field twice")
    return NamedTuple(value.name, fields)


def decode_shape(shape: schema.TensorShapeProto) -> TensorShape:
    """Return the shape in a message.

    Raises ShapeError for a size below -1, or sizes beside an unknown rank.
    """
    if shape.unknown_rank and shape.dim:
        raise errors.ShapeError("a shape of unknown rank has dimensions")
    if any(dim.size < -1 for dim in shape.dim):
        raise errors.ShapeError("a dimension is negative")
    names = tuple(dim.name for dim in shape.dim)
    return TensorShape(shape_of(shape), names if any(names) else ())


def encode(value: object, node: Optional[str] = None) -> schema.StructuredValue:
    """Encode a nest.

    Args:
      value: plain Python, the value types of this module, any namedtuple, any mapping with string
        keys, NumPy arrays.
      node: a description of the value, for errors.

    Raises:
      StructureError: the format cannot represent the value.
      LimitError: the value is nested too deep, or contains itself.

    RFC: FN-09, PY-06
    """
    out = schema.StructuredValue()
    try:
        _encode(value, out, 0)
    except errors.SavedModelError as error:
        error.node = node
        raise
    return out


def _encode(value: object, out: schema.StructuredValue, depth: int) -> None:
    _check_depth(depth)
    if value is None:
        out.none_value.SetInParent()
    elif isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int):
        if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
            raise errors.StructureError(f"{value} does not fit 64 bits", clause="PY-06")
        out.int64_value = value
    elif isinstance(value, float):
        out.float64_value = value
    elif isinstance(value, str):
        out.string_value = _text(value)
    elif isinstance(value, (DType, TensorShape, TensorSpec, BoundedTensorSpec, Tensor)):
        _encode_leaf(value, out)
    elif isinstance(value, TypeSpec):
        held = out.type_spec_value
        held.type_spec_class, held.type_spec_class_name = value.kind, _text(value.class_name)
        held.num_flat_components = value.num_flat_components
        _encode(value.state, held.type_state, depth + 1)
    else:
        _encode_container(value, out, depth + 1)


def _encode_leaf(value: Any, out: schema.StructuredValue) -> None:
    if isinstance(value, DType):
        out.tensor_dtype_value = value.number
    elif isinstance(value, TensorShape):
        out.tensor_shape_value.CopyFrom(encode_shape(value))
    elif isinstance(value, Tensor):
        (out.numpy_value if value.is_numpy else out.tensor_value).CopyFrom(value.proto)
    else:
        held = (
            out.tensor_spec_value
            if isinstance(value, TensorSpec)
            else out.bounded_tensor_spec_value
        )
        held.name, held.dtype = _text(value.name or ""), value.dtype.number
        held.shape.CopyFrom(encode_shape(value.shape))
        if isinstance(value, BoundedTensorSpec):
            out.bounded_tensor_spec_value.minimum.CopyFrom(value.minimum.proto)
            out.bounded_tensor_spec_value.maximum.CopyFrom(value.maximum.proto)


def _encode_container(value: Any, out: schema.StructuredValue, depth: int) -> None:
    """Encode a container whose items are at the given depth."""
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        value = NamedTuple(type(value).__name__, tuple(zip(fields, value)))
    if isinstance(value, NamedTuple):
        out.named_tuple_value.name = _text(value.name)
        for name, item in value.fields:
            pair = out.named_tuple_value.values.add(key=_text(name))
            _encode(item, pair.value, depth)
    elif isinstance(value, (list, tuple)):
        items = out.list_value if isinstance(value, list) else out.tuple_value
        items.SetInParent()
        for item in value:
            _encode(item, items.values.add(), depth)
    elif isinstance(value, Mapping):
        out.dict_value.SetInParent()
        for key, item in value.items():
            if not isinstance(key, str):
                raise errors.StructureError(
                    f"a dict has the key {key!r}; only strings can be stored", clause="PY-05"
                )
            _encode(item, out.dict_value.fields[_text(key)], depth)
    elif _is_array(value):
        _encode_leaf(Tensor.of(value, is_numpy=True), out)
    else:
        raise errors.StructureError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored"
        )


def _is_array(value: object) -> bool:
    import sys

    numpy = sys.modules.get("numpy")  # only NumPy makes arrays, so it is imported
    return numpy is not None and isinstance(value, numpy.ndarray)


def _text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.StructureError(f"{text!r} is not text: {error.reason}") from error
    return text


def encode_shape(shape: TensorShape) -> schema.TensorShapeProto:
    """Return a shape as a message. Raises ShapeError."""
    for size in shape.dims or ():
        if size is not None and not 0 <= size <= _MAX_INT64:
            raise errors.ShapeError(f"a dimension of {size}")
    out = shape_proto(shape.dims)
    if shape.names and len(shape.names) != len(out.dim):
        raise errors.ShapeError(f"{len(shape.names)} names for {len(out.dim)} dimensions")
    for dim, name in zip(out.dim, shape.names):
        dim.name = name
    return out


def _check_depth(depth: int) -> None:
    if depth > limits.STRUCTURE_DEPTH:
        reason = f"a structure is nested deeper than {limits.STRUCTURE_DEPTH}"
        raise errors.LimitError(reason, limit="STRUCTURE_DEPTH", rule="SM-FN-10")
